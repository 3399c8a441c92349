#!/bin/sh
# tests/programs/t_ranks.sh - programs with --ranks and --split: the same tokens as one process has, over fork and over
# each MPI that is here; refusals; and what remains of a rank that is killed or stopped.
. "${srcdir:-.}/tests/support/prelude.sh"
export JITRUN_RANK_PATIENCE=20 # other tests may keep all cores busy
text='Once upon a time'

generate() { ./jitrun "$model" --prompt "$text" -n 24 --temp 0 --print-ids --cache "$dir/cache" "$@"; }

generate --quiet > "$dir/alone"
generate --ranks fork:2 > "$dir/two" 2> "$dir/err"
check "two processes give the tokens of one" cmp "$dir/alone" "$dir/two"
check "they say which layers each has" \
	grep -q '2 ranks by fork, pipeline: rank 0 layers 0 to .* and both ends' "$dir/err"
generate --quiet --ranks fork:3 --split pipeline:1,4,1 > "$dir/three" 2> "$dir/err"
check "three with layers as given do" cmp "$dir/alone" "$dir/three"
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
fails 'rows and auto are not built yet' --ranks fork:2 --split rows
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

# ---- MPI

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_RANK PMI_SIZE
last_rank() {
	ps -eo pid,args | awk -v dir="$dir" 'index($0, dir "/cache") && !/mpirun|awk/ { print $1 }' |
		sort -n | tail -n 1
}
try_mpi() { # MODULE LAUNCHER OPTION...
	name=$1
	launcher=$2
	shift 2
	[ -f ".libs/jitrun-$name.so" ] && command -v "$launcher" > /dev/null || { echo "# skipped: no $name"; return; }
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
	$run -n 1 ./jitrun "$model" $common --ranks mpi : -n 1 ./jitrun "$model" $common --ranks mpi --kv-type f32 \
		> "$dir/out" 2> "$dir/err"
	check "$name: another KV type is refused" [ $? != 0 ]
	check "$name: by name" grep -q 'rank 1 has a KV cache of f32, and rank 0 of f16' "$dir/err"
	$run -n 1 ./jitrun "$model" $common --ranks mpi : -n 1 ./jitrun "$model" $common --ranks mpi --activations f32 \
		> "$dir/out" 2> "$dir/err"
	check "$name: so are other numerics: $(grep -a 'jitrun:' "$dir/err" | head -c 200)" \
		grep -q 'rank 1 has numerics "f32 activations", and rank 0 "exact"' "$dir/err"
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
