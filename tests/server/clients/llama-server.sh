#!/bin/sh
# llama-server.sh - jitserve under the options of llama.cpp's server, as the tests of that server start it.
#
# JITSERVE: the program; JITSERVE_MODEL: the file that stands for --hf-repo. Options that change no answer, or that
# jitserve does by itself, are left out; others end with a sentence and exit status 2, so that a test that needs them
# fails and is not passed by accident. Where llama-server divides its context among --parallel answers, jitserve gets
# what is left for each.
set -eu
: "${JITSERVE:?}" "${JITSERVE_MODEL:?}"
model=$JITSERVE_MODEL context= parallel= whole= pages='*'
llama3='{% for m in messages %}{{ "<|start_header_id|>" + m.role + "<|end_header_id|>\n\n" + m.content }}<|eot_id|>
{%- endfor %}{{ "<|start_header_id|>assistant<|end_header_id|>\n\n" }}'
command_r='{% for m in messages -%}
<|START_OF_TURN_TOKEN|><|{{ m.role|upper }}_TOKEN|>{{ m.content }}<|END_OF_TURN_TOKEN|>
{%- endfor %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>'
refuse() { echo "llama-server.sh: $1 is not done" >&2; exit 2; }
kept() { file=$(mktemp); printf '%s' "$1" >"$file"; }
n=$#
while [ "$n" -gt 0 ]; do
	option=$1
	shift
	n=$((n - 1))
	take() { value=$1; n=$((n - 1)); }
	case $option in
	--no-jinja | --offline | --cont-batching | --metrics | --slots | --no-ui | --jinja | \
		--embedding) ;;
	--no-slots | --verbose) set -- "$@" "$option" ;;
	--kv-unified) whole=yes ;;
	--ubatch-size | --n-gpu-layers | -fa | --pooling | --cache-ram)
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
	--slot-save-path)
		take "$@"
		shift
		mkdir -p "$value"
		set -- "$@" --slot-save "$value"
		;;
	--batch-size)
		take "$@"
		shift
		[ "$value" -le 1024 ] || value=1024 # as many as a pass may have
		set -- "$@" --batch "$value"
		;;
	--ctx-size) take "$@"; shift; context=$value ;;
	--parallel) take "$@"; shift; parallel=$value; set -- "$@" --parallel "$value" ;;
	--api-key) take "$@"; shift; kept "$(echo "$value" | tr ',' '\n')"; set -- "$@" --api-key-file "$file" ;;
	--cors-origins) take "$@"; shift; pages=$value ;;
	--reasoning)
		take "$@"
		shift
		[ "$value" = off ] || value=on # auto is: where the template can
		set -- "$@" --reasoning "$value"
		;;
	--chat-template-file) take "$@"; shift; set -- "$@" --template "$value" ;;
	--chat-template)
		take "$@"
		shift
		case $value in
		llama3) kept "$llama3"; set -- "$@" --template "$file" ;;
		command-r) kept "$command_r"; set -- "$@" --template "$file" ;;
		chatml) ;; # what jitserve takes where a model has none
		*[!a-z0-9.-]*) kept "$value"; set -- "$@" --template "$file" ;;
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
exec "$JITSERVE" "$model" "$@" --cors-origin "$pages" --context "${context:-0}"
