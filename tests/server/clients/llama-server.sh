#!/bin/sh
# llama-server.sh - jitserve under the options of llama.cpp's server, as the tests of that server start it.
#
# JITSERVE: the program; JITSERVE_MODEL: the file that stands for --hf-repo. Options that change no answer, or that
# jitserve does by itself, are left out; others end with a sentence and exit status 2, so that a test that needs them
# fails and is not passed by accident. Where llama-server divides its context among --parallel answers, jitserve gets
# what is left for each.
set -eu
: "${JITSERVE:?}" "${JITSERVE_MODEL:?}"
model=$JITSERVE_MODEL context= parallel= whole=
refuse() { echo "llama-server.sh: $1 is not done" >&2; exit 2; }
kept() { file=$(mktemp); printf '%s' "$1" >"$file"; }
n=$#
while [ "$n" -gt 0 ]; do
	option=$1
	shift
	n=$((n - 1))
	take() { value=$1; n=$((n - 1)); }
	case $option in
	--no-slots | --no-jinja | --offline | --cont-batching | --metrics | --slots | --no-ui | --jinja | --verbose | \
		--embedding) ;;
	--kv-unified) whole=yes ;;
	--batch-size | --ubatch-size | --n-gpu-layers | -fa | --pooling | --cache-ram)
		shift
		n=$((n - 1))
		;;
	--hf-repo | --hf-file)
		take "$@"
		shift
		case $value in
		*stories260K*) ;;
		ggml-org/models) ;; # which file of it, --hf-file says
		*) refuse "$option $value" ;;
		esac
		;;
	--model) take "$@"; shift; model=$value ;;
	--host | --port | --alias | --threads | --temp | --seed | --n-predict)
		take "$@"
		shift
		set -- "$@" "$option" "$value"
		;;
	--ctx-size) take "$@"; shift; context=$value ;;
	--parallel) take "$@"; shift; parallel=$value; set -- "$@" --parallel "$value" ;;
	--api-key) take "$@"; shift; kept "$(echo "$value" | tr ',' '\n')"; set -- "$@" --api-key-file "$file" ;;
	--cors-origins) take "$@"; shift; set -- "$@" --cors-origin "$value" ;;
	--chat-template-file) take "$@"; shift; set -- "$@" --template "$value" ;;
	--chat-template)
		take "$@"
		shift
		case $value in
		*[!a-z0-9.-]*) kept "$value"; set -- "$@" --template "$file" ;;
		chatml) ;; # what jitserve takes where a model has none
		*) refuse "--chat-template $value" ;;
		esac
		;;
	*) refuse "$option" ;;
	esac
done
[ -n "$whole$context" ] || context=0
if [ -n "$context" ] && [ -z "$whole" ] && [ -n "$parallel" ]; then
	context=$((context / parallel))
fi
exec "$JITSERVE" "$model" "$@" --context "${context:-0}"
