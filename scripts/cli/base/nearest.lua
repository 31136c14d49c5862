-- The known word that a mistyped one probably meant, for messages: as the binding finds it.
return require "cairn.nearest"
