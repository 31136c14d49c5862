# Files written by earlier releases: they must be readable for ever.
cairn_test_folder(compat cairn_io)
