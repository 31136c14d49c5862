module cairn

go 1.19
