#!/bin/sh
# tests/programs/t_ranks.sh - programs with --ranks and --split: the same tokens as one process has, over fork and over
# each MPI that is here; refusals; and what remains of a rank that is killed or stopped.
. "${srcdir:-.}/tests/support/prelude.sh"
export JITRUN_RANK_PATIENCE=20 # other tests may keep all cores busy
text='Once upon a time'
built=$PWD

generate() { ./jitrun "$model" --prompt "$text" -n 24 --temp 0 --print-ids --cache "$dir/cache" "$@"; }

generate --quiet > "$dir/alone"
generate --ranks fork:2 > "$dir/two" 2> "$dir/err"
check "two processes give the tokens of one" cmp "$dir/alone" "$dir/two"
check "they say which layers each has" \
	grep -q '2 ranks by fork, pipeline: rank 0 layers 0 to .* and both ends' "$dir/err"
generate --quiet --ranks fork:3 --split pipeline:1,4,1 > "$dir/three" 2> "$dir/err"
check "three with layers as given do" cmp "$dir/alone" "$dir/three"
generate --quiet --ranks fork:3 --split rows:1,4,2 > "$dir/three" 2> "$dir/err"
check "three with rows of each matrix do" cmp "$dir/alone" "$dir/three"
generate --ranks fork:2 --split auto > "$dir/two" 2> "$dir/err"
check "the split that is chosen gives them, too" cmp "$dir/alone" "$dir/two"
check "it says why: $(head -c 400 "$dir/err")" \
	grep -q 'auto: .* us a message, .* Gbit/s, weights read at .*; predicted for a token: .* by rows, ' "$dir/err"
check "no process is left" [ -z "$(ps -eo args | grep "[-]-cache $dir/cache")" ]

fails() { # SENTENCE ARGUMENT...
	sentence=$1
	shift
	generate --quiet "$@" > "$dir/out" 2> "$dir/err"
	check "refused: $*" [ $? = 1 ]
	check "the sentence: $(head -c 300 "$dir/err")" grep -q -- "$sentence" "$dir/err"
}
fails 'fork:9 *' --ranks fork:9x
fails '9 are too many for a model of 6 layers' --ranks fork:9
fails 'nothing is split without ranks' --split pipeline
fails 'no launcher of MPI started this process' --ranks mpi
fails 'is no carrier' --ranks udp:2
export JITRUN_MPI=nowhere
fails 'the module of the MPI nowhere is not there' --ranks mpi
export JITRUN_MPI="$dir/nowhere.so"
fails 'the module of the MPI .*nowhere.so is not there' --ranks mpi
unset JITRUN_MPI
fails 'several ranks compute exactly alone' --ranks fork:2 --numerics bounded

if [ -x ./jitbench ]; then
	./jitbench "$model" --ranks fork:2 --split pipeline:3,3 --cache "$dir/cache" --no-start -p 16 -n 4 \
		--repetitions 1 --force > "$dir/bench" 2>&1
	check "jitbench measures ranks: $(tail -n 1 "$dir/bench")" [ $? = 0 ]
fi

# ---- adapters

shared=${JITRUN_SHARED:-$top/../shared}/models
[ ! -d "$shared" ] || shared=$(cd "$shared" && pwd) # ranks begin in folders of their own
if [ -r "$shared/tale-llama-shout/adapter_config.json" ]; then
	own_model=$model
	model=$shared/tale-llama/tale-llama-q8_0.gguf
	generate --quiet > "$dir/bare"
	generate --quiet --lora "$shared/tale-llama-shout" > "$dir/worn"
	check "the adapter changes the tokens" sh -c "! cmp -s '$dir/bare' '$dir/worn'"
	for split in pipeline rows:1,2; do
		generate --quiet --ranks fork:2 --split $split --lora "$shared/tale-llama-shout" > "$dir/two" \
			2> "$dir/err"
		check "with an adapter, two processes ($split) give the tokens of one: $(head -c 300 "$dir/err")" \
			cmp "$dir/worn" "$dir/two"
	done
	model=$own_model
fi

# ---- before anything is loaded

./jitrun info "$model" --ranks mpi:3 --split rows:1,1,2 > "$dir/out" 2> "$dir/err"
check "info says what ranks would have: $(cat "$dir/err")" [ $? = 0 ]
check "of each, and what they exchange: $(tail -n 20 "$dir/out")" \
	sh -c "tr -s ' \n' ' ' < '$dir/out' | grep -q 'ranks 3, by rows rank 0: weights .* rank 2: .* exchanges of '"
./jitrun info "$model" --ranks fork:2 --json > "$dir/out" 2> "$dir/err"
check "as JSON, too: $(cat "$dir/err" "$dir/out")" grep -q '"exchanged_bytes": *2048' "$dir/out"
for refused in '--ranks fork' '--split rows' '--ranks fork:99' '--ranks fork:2 --split rows:1' \
	'--ranks fork:2 --split auto'; do
	./jitrun info "$model" $refused > "$dir/out" 2> "$dir/err"
	check "info refuses $refused: $(cat "$dir/err")" [ $? = 1 ]
done
if [ -x ./jitbench ]; then
	./jitbench --predict --ranks fork:2 --shape qwen3-14b --weights q4_0 --read-bandwidth 62 \
		> "$dir/out" 2> "$dir/err"
	check "two machines of 62 GB/s over 1 Gbit/s: $(cat "$dir/err" "$dir/out")" \
		grep -q '^| 1 Gbit/s | 80 us | 11.[01] | 7.7 | 15' "$dir/out"
	./jitbench --predict --ranks fork:1 --shape qwen3-14b > "$dir/out" 2> "$dir/err"
	check "one machine is refused: $(cat "$dir/err")" [ $? = 1 ]
fi

# ---- jitserve

serves() { [ -x ./jitserve ] && command -v curl > /dev/null; }
own_port
ask() { # FILE: what the server answers to one request
	curl -s -m 30 "http://127.0.0.1:$port/v1/completions" \
		-d '{"model":"m","prompt":"Once","max_tokens":24,"temperature":0,"ignore_eos":true}' > "$1"
}
text_of() { sed 's/.*"text":"\([^"]*\)".*/\1/' "$1"; }
wait_ready() { # PID
	tries=0
	until ./jitserve --probe --port "$port" > /dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] && kill -0 "$1" || break
		sleep 0.1
	done
}
serve() { # COMMAND BEFORE jitserve... -- OPTION...
	before=
	while [ "$1" != -- ]; do before="$before $1"; shift; done
	shift
	$before ./jitserve "$model" --alias m --port "$port" --cache "$dir/cache" --context 512 --quiet "$@" \
		2> "$dir/err" &
	server=$!
	wait_ready $server
}
# An answer with what makes it again.
request='{"model":"m","prompt":"Once","max_tokens":24,"temperature":0.8,"seed":5,"ignore_eos":true}'
keep() { # NAME
	curl -s -m 30 -D "$dir/head" "http://127.0.0.1:$port/v1/completions" -d "$request" > "$dir/$1.answer"
	field=$(tr -d '\r' < "$dir/head" | sed -n 's/^[Xx]-[Jj]itrun-[Rr]eplay: //p')
	printf '{"path": "/v1/completions", "request": %s, "replay": "%s", "answer": %s}\n' "$request" "$field" \
		"$(cat "$dir/$1.answer")" > "$dir/$1.json"
}
replay() { # FILE OPTION...
	kept=$dir/$1
	shift
	timeout 60 ./jitserve "$model" --alias m --cache "$dir/cache" --quiet --replay "$kept" "$@" \
		> "$dir/out" 2> "$dir/err"
}
if serves; then
	serve --
	ask "$dir/answer"
	keep alone
	kill $server
	wait $server
	text_of "$dir/answer" > "$dir/alone"
	check "a server answers: $(head -c 300 "$dir/answer")" [ "$(wc -c < "$dir/alone")" -gt 40 ]

	serve -- --ranks fork:3 --split pipeline:2,2,2
	for i in 1 2 3; do
		ask "$dir/answer$i" &
		asking="${asking:-} $!"
	done
	wait $asking
	for i in 1 2 3; do
		text_of "$dir/answer$i" | cmp -s - "$dir/alone"
		check "three ranks give a server's clients the same: $(head -c 300 "$dir/answer$i")" [ $? = 0 ]
	done
	keep three
	curl -s -m 30 "http://127.0.0.1:$port/models/unload" -d '{"model":"m"}' > "$dir/out"
	check "no request makes the model leave: $(cat "$dir/out")" \
		grep -q 'computed by several ranks and stays' "$dir/out"
	kill $server
	wait $server
	check "SIGTERM ends it: $(cat "$dir/err")" [ $? = 0 ]

	replay three.json
	check "one process makes the answer of three ranks again: $(head -c 300 "$dir/err" "$dir/out")" [ $? = 0 ]
	for split in pipeline rows:1,2; do
		replay alone.json --ranks fork:2 --split $split
		check "two ranks ($split) make that of one process: $(head -c 300 "$dir/err" "$dir/out")" [ $? = 0 ]
	done
	sed 's/replay": "\(.*model=\)./replay": "\1x/' "$dir/alone.json" > "$dir/other.json"
	replay other.json --ranks fork:2
	check "ranks refuse the answer of another model: $(head -c 300 "$dir/err" "$dir/out")" [ $? = 1 ]

	JITRUN_RANK_PATIENCE=1
	serve -- --ranks fork:2
	kill -STOP "$(ps -o pid= --ppid $server | sort -n | tail -n 1)"
	ask "$dir/answer"
	check "a request that meets a stopped rank is told: $(cat "$dir/answer")" \
		grep -q '"code":503.*rank 1 .*has given no sign of life for 1.0 s' "$dir/answer"
	wait $server
	check "the server ends with status 3" [ $? = 3 ]
	serve -- --ranks fork:3
	kill -KILL "$(ps -o pid= --ppid $server | sort -n | tail -n 1)"
	wait $server
	check "a dead rank ends a server without requests" [ $? = 3 ]
	check "and named: $(cat "$dir/err")" grep -q 'rank 2 .*was killed by signal 9' "$dir/err"
	JITRUN_RANK_PATIENCE=20
	for refused in "$model --ranks fork:2" "--ranks fork:2 --models-dir $dir" "--ranks fork:2 --keep-alive 5m"; do
		./jitserve "$model" --port 0 $refused > "$dir/out" 2> "$dir/err"
		check "refused: $refused" [ $? = 2 ]
		check "in one sentence: $(cat "$dir/err")" grep -q -e '--ranks ' "$dir/err"
	done
fi

if [ -x ./jitserve ]; then
	check "deploy/jitserve.slurm is a script" bash -n "$top/deploy/jitserve.slurm"
	./jitserve --help-all > "$dir/help"
	sed -n '/jitserve.*--ranks/,/quiet/p' "$top/deploy/jitserve.slurm" "$top/deploy/mpijob.yaml" |
		grep -o -e '--[a-z][a-z-]*' | sort -u > "$dir/options"
	check "the files in deploy/ name options" [ "$(wc -l < "$dir/options")" -ge 8 ]
	while read -r option; do
		check "jitserve has $option, which a file in deploy/ has" grep -q -e "$option" "$dir/help"
	done < "$dir/options"
fi

# ---- MPI

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_RANK PMI_SIZE
ranks() {
	ps -eo pid,args | awk -v dir="$dir" 'index($0, dir "/cache") && !/mpirun|mpiexec|hydra|awk/ { print $1 }' |
		sort -n
}
first_rank() { ranks | head -n 1; }
last_rank() { ranks | tail -n 1; }
try_mpi() { # MODULE LAUNCHER OPTION...
	name=$1
	launcher=$2
	shift 2
	[ -f ".libs/jitrun-$name.so" ] && command -v "$launcher" > /dev/null || { echo "# skipped: no $name"; return; }
	# What MPI's libraries keep until the end is no leak of jitrun's.
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
	run="timeout 60 $launcher $*"
	common="--prompt Once -n 24 --temp 0 --print-ids --quiet --cache $dir/cache"
	./jitrun "$model" $common > "$dir/alone"
	$run -n 2 ./jitrun "$model" $common --ranks mpi 2> "$dir/err" | tr -d '\r\n' > "$dir/mpi"
	check "$name: two ranks give the tokens of one: $(head -c 300 "$dir/err")" \
		[ "$(tr -d '\r\n' < "$dir/alone")" = "$(cat "$dir/mpi")" ]
	JITRUN_MPI=$PWD/.libs/jitrun-$name.so \
		$run -n 1 ./jitrun "$model" $common --ranks mpi : \
		-n 2 ./jitrun "$model" $common --ranks mpi --isa avx2 2> "$dir/err" | tr -d '\r\n' > "$dir/mpi"
	check "$name: and three do, two of them with AVX2 alone: $(head -c 300 "$dir/err")" \
		[ "$(tr -d '\r\n' < "$dir/alone")" = "$(cat "$dir/mpi")" ]
	$run -n 1 ./jitrun "$model" $common --ranks mpi --split rows:2,3 : \
		-n 1 ./jitrun "$model" $common --ranks mpi --split rows:2,3 --isa avx2 2> "$dir/err" |
		tr -d '\r\n' > "$dir/mpi"
	check "$name: and two by rows, one of them with AVX2 alone: $(head -c 300 "$dir/err")" \
		[ "$(tr -d '\r\n' < "$dir/alone")" = "$(cat "$dir/mpi")" ]
	$run -n 1 ./jitrun "$model" $common --ranks mpi : -n 1 ./jitrun "$model" $common --ranks mpi --kv-type f32 \
		> "$dir/out" 2> "$dir/err"
	check "$name: another KV type is refused" [ $? != 0 ]
	check "$name: by name" grep -q 'rank 1 has a KV cache of f32, and rank 0 of f16' "$dir/err"
	$run -n 1 ./jitrun "$model" $common --ranks mpi : -n 1 ./jitrun "$model" $common --ranks mpi --activations f32 \
		> "$dir/out" 2> "$dir/err"
	check "$name: so are other numerics: $(grep -a 'jitrun:' "$dir/err" | head -c 200)" \
		grep -q 'rank 1 has numerics "f32 activations", and rank 0 "exact"' "$dir/err"
	if [ -r "$shared/tale-llama-shout/adapter_config.json" ]; then
		mkdir -p "$dir/first" "$dir/second"
		for part in first/worn=shout second/worn=whisper; do
			ln -sfn "$shared/tale-llama-${part#*=}" "$dir/${part%=*}"
		done
		adapted="$PWD/jitrun $shared/tale-llama/tale-llama-q8_0.gguf --prompt Once -n 8 --ranks mpi --lora worn"
		$run -n 1 -wdir "$dir/first" $adapted : -n 1 -wdir "$dir/second" $adapted \
			> "$dir/out" 2> "$dir/err"
		check "$name: an adapter of other files on rank 1 is refused" [ $? != 0 ]
		check "$name: by name: $(grep -a 'jitrun:' "$dir/err" | head -c 300)" \
			grep -q 'rank 1: worn is another adapter here: its fingerprint is .*, and on rank 0 ' "$dir/err"
		$run -n 2 -wdir "$dir/first" $adapted --temp 0 --print-ids --quiet 2> "$dir/err" |
			tr -d '\r\n' > "$dir/mpi"
		(cd "$dir/first" && "$built/jitrun" "$shared/tale-llama/tale-llama-q8_0.gguf" --prompt Once -n 8 \
			--lora worn --temp 0 --print-ids --quiet) | tr -d '\r\n' > "$dir/out"
		check "$name: two ranks with an adapter give the tokens of one: $(head -c 300 "$dir/err")" \
			cmp "$dir/out" "$dir/mpi"
		check "$name: which are some" [ -s "$dir/out" ]
	fi
	if [ -x ./jitbench ]; then
		$run -n 2 ./jitbench "$model" --ranks mpi --split rows --cache "$dir/cache" -p 16 -n 4 --repetitions 1 \
			--force > "$dir/bench" 2>&1
		check "$name: jitbench measures ranks: $(tail -n 3 "$dir/bench")" [ $? = 0 ]
		check "$name: and says what it found" grep -q 'tg4' "$dir/bench"
	fi
	if serves; then
		serve $run -n 2 -- --ranks mpi
		ask "$dir/answer"
		text_of "$dir/answer" > "$dir/mpi"
		./jitrun "$model" --prompt Once -n 24 --temp 0 --ignore-eos --quiet > "$dir/out"
		check "$name: a server's text is the same: $(head -c 300 "$dir/err")" \
			[ "$(cat "$dir/mpi")" = "$(cat "$dir/out")" ]
		kill "$(first_rank)"
		wait $server
		check "$name: SIGTERM of rank 0 ends all: $(head -c 300 "$dir/err")" [ $? = 0 ]
	fi
	JITRUN_RANK_PATIENCE=1 $run -n 2 ./jitrun "$model" --prompt "$text" --ignore-eos -n 1000000 --context 65536 \
		--cache "$dir/cache" --quiet --ranks mpi > /dev/null 2> "$dir/err" &
	launched=$!
	sleep 3
	kill -STOP "$(last_rank)"
	wait $launched
	check "$name: a rank that stops ends all, with a status" [ $? != 0 ]
	check "$name: and a sentence names it: $(grep -a 'jitrun:' "$dir/err" | head -c 200)" \
		grep -q 'rank [01] on .* has given no sign of life for 1.0 s' "$dir/err"
}
try_mpi openmpi mpirun.openmpi --oversubscribe
try_mpi mpich mpirun.mpich
finish
