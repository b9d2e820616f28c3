-- Sends the requests of a file, each once, and checks every answer: status 200, and a text in the body.
-- wrk -s wrk.lua URL -- FILE TEXT

local threads = {}

function setup(thread)
   table.insert(threads, thread)
end

function init(args)
   requests, sent, good, bad, exhausted, example = {}, 0, 0, 0, false, ""
   expected = args[2]
   local file = assert(io.open(args[1], "rb"))
   while true do
      local length = file:read("*l")
      if not length then break end
      requests[#requests + 1] = file:read(tonumber(length))
   end
   file:close()
end

function request()
   sent = sent + 1
   if sent > #requests then
      exhausted = true
      return requests[1]
   end
   return requests[sent]
end

function response(status, _, body)
   if status == 200 and body:find(expected, 1, true) then
      good = good + 1
   else
      bad = bad + 1
      if example == "" then
         example = status .. " " .. body:sub(1, 300)
      end
   end
end

function done(summary, latency, _)
   local thread = threads[1]
   local errors = summary.errors
   io.write(string.format(
      'RESULT {"microseconds":%d,"good":%d,"bad":%d,"exhausted":%s,"broken":%d,"p50":%d,"p99":%d}\n',
      summary.duration, thread:get("good"), thread:get("bad"), tostring(thread:get("exhausted")),
      errors.connect + errors.read + errors.write + errors.timeout,
      latency:percentile(50), latency:percentile(99)
   ))
   io.write("EXAMPLE ", thread:get("example"), "\n")
end
