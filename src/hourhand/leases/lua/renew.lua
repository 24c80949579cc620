-- renew: stay a member; whoever is none any more, or meets a server with another memory, is told so.
if redis.call('HGET', meta, 'incarnation') ~= incarnation then
    return {'forgotten'}
end
if not redis.call('ZSCORE', members, node) then
    return {'lost'}
end
stay()
return view()
