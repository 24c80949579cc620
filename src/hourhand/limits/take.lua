-- take: tokens from a bucket, all or none, on the server's time. The key holds when the bucket is full again (us).
-- The arithmetic is that of core/bucket.py; whole microseconds since the epoch fit into Lua's numbers.
local token_us, burst, amount = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local missing = full + (amount - burst) * token_us - now
if missing > 0 then
    return {0, burst - math.ceil((full - now) / token_us), string.format('%.0f', missing)}
end
full = full + amount * token_us
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
return {1, burst - math.ceil((full - now) / token_us), '0'}
