#!/bin/sh
# scripts/first_session.sh BUILD - prints docs/first-session.md: what a newcomer types and sees on a terminal of 80
# columns, by running it. BUILD holds the programs. The text is the same on every machine; speeds are not.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
PATH=$(cd "$1" && pwd):$PATH
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
XDG_CACHE_HOME=$dir/cache COLUMNS=80 HOME=$dir
unset JITRUN_CACHE
export PATH XDG_CACHE_HOME COLUMNS HOME
cp "$top/models/tale-q8_0.gguf" "$dir/" && cd "$dir" || exit 1
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}\n' > story.jinja
yes 'Once upon a time there was a cat.' | head -n 200 > long.txt

say() { printf '\n%s\n\n' "$*"; }
# type COMMAND: shows it and what it says, in lines of the terminal
type() {
	echo '```'
	printf '$ %s\n' "$1"
	sh -c "$1" 2>&1 < /dev/null | fold -s -w 80 | sed 's/ *$//'
	echo '```'
}

cat <<'TEXT'
# A first session

Typed into a terminal of 80 columns, with the model that comes with the sources.
`scripts/first_session.sh build` runs these commands and prints this page.
The words are the same on every machine, the speeds are not. Long lines are broken
at words, so that the page is easy to read.
TEXT
say 'Which jitrun is this, and what code does it generate here?'
type 'jitrun --version'
say 'A model continues a text. Two lines say what that took; `-v` says more, `-q` nothing.'
type 'jitrun tale-q8_0.gguf --prompt "Once upon a time" -n 60 --seed 1'
say 'The same again, in full. The kernels come from the cache now.'
type 'jitrun tale-q8_0.gguf --prompt "Once upon a time" -n 20 --seed 1 -v --speculate off'
say 'A command line of llama.cpp is understood. What changes nothing here is said.'
type 'jitrun -m tale-q8_0.gguf -p "Once upon a time" -n 20 -ngl 99 -fa on -s 1'
say 'So is what ollama calls it, as far as there is something to run.'
type 'jitrun serve qwen3:0.6b'
type 'jitrun qwen3:0.6b'
say 'What is wrong is named, with what was likely meant.'
type 'jitrun tale-q8_0.gguf --promt "Once upon a time"'
type 'jitrun tale-q8_0.gguf "Once upon a time"'
type 'jitrun tale-q8_0.gguf --control-vector a.gguf'
say 'A prompt that does not fit is refused before anything is computed.'
type 'jitrun tale-q8_0.gguf --file long.txt -c 512'
say 'A model without a chat template cannot talk, and says so.'
type 'jitrun tale-q8_0.gguf --chat'
say 'With a template it can. Each line is a message; on a terminal `>` asks for it, and `/help` lists commands.'
type 'cat story.jinja'
type 'printf "Once upon a time\nAnd then\n" | jitrun tale-q8_0.gguf --template story.jinja --chat -n 16 -s 1 -q'
say 'All kernels that a model can need, made ahead of time; then nothing is generated any more.'
type 'jitwarm tale-q8_0.gguf --out kernels.jkp'
type 'jitrun tale-q8_0.gguf --cache kernels.jkp --sealed -p "Once upon a time" -n 20 -s 1'
say '`jitrun --help` has the options for every day, `man jitrun` all.'
