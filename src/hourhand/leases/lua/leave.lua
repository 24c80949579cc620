-- leave: be no member, and have nothing.
redis.call('ZREM', members, node)
local written = redis.call('HGETALL', holders)
for i = 1, #written, 2 do
    if written[i + 1] == node then
        redis.call('HDEL', holders, written[i])
    end
end
changed()
return {'left'}
