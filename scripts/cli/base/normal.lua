-- A normal number of a generator of uniform ones, by Box and Muller.
return function(random) return math.sqrt(-2 * math.log(1 - random())) * math.cos(2 * math.pi * random()) end
