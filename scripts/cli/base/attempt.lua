-- What may take longer than anybody would wait for it, in a process of its own that is ended when its time is up.
local attempts = require "cli.base.attempts"

-- Calls work(tell) in a copy of this process for at most so many seconds. Returns all that it told, texts one after
-- the other: nothing, where it failed, or where the system gives no process. Nothing changes here.
return function(seconds, work) return attempts(seconds, { work }, 1)[1] end
