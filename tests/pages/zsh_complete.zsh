# What zsh offers for a line:  zsh -f zsh_complete.zsh FOLDER_OF_CAIRN WORKING_FOLDER LINE
# A shell under a pseudo terminal, as its completion runs nowhere else; it says the matches and inserts none. Its prompt says that
# it reads keys, and what was written before would be lost.
zmodload zsh/zpty
zpty shell zsh -f -i
send() { zpty -w shell "$1"; }
expect() { local out; zpty -r shell out "*$1*" && print -r -- "$out"; }
send "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; cd $2"
send 'show() { compstate[insert]=""; compstate[list]=list; print -r -- "ALL""SAID" >&2; }'
send 'compadd() { local -a found; builtin compadd -O found "$@"; print -rl -- "MATCH "${^found} >&2; builtin compadd "$@"; }'
send 'comppostfuncs=(show); bindkey "^I" complete-word; zle -C complete-word complete-word _main_complete; PS1="READS""KEYS"'
expect READSKEYS >/dev/null
zpty -w -n shell "$3"$'\t'
expect ALLSAID | grep -a -o 'MATCH [^[:cntrl:]]*' | sed 's/^MATCH //' | sort -u
zpty -d shell
