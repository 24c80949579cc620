-- enter: become a member, with the segments that the store has given it. An empty server gets an incarnation.
redis.call('HSETNX', meta, 'incarnation', incarnation)
stay()
for i = 6, #ARGV do
    redis.call('HSET', holders, ARGV[i], node)
end
changed()
return {redis.call('HGET', meta, 'incarnation'), view()}
