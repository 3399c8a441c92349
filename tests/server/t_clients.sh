#!/bin/sh
# tests/server/t_clients.sh - the clients that programs use, those of openai, Anthropic, ollama, Vercel's AI SDK and
# LangChain of npm, against jitserve.
#
# They are installed into a folder of this test's own; without node, npm or a way to the registry the test is skipped.
. "${srcdir:-.}/tests/support/prelude.sh"
. "${srcdir:-.}/tests/support/serve.sh"
for program in node npm timeout; do
	command -v $program >/dev/null || { echo "# skipped: there is no $program"; exit 77; }
done
cp "$top"/tests/server/clients/*.mjs "$dir"
echo '{"private":true}' >"$dir/package.json"
if ! (cd "$dir" && timeout 120 npm install --no-audit --no-fund --fetch-retries=0 --fetch-timeout=20000 \
	openai@6.49.0 @anthropic-ai/sdk@1.12.0 ollama@0.6.4 zod@4.6.7 ai@6.0.326 @ai-sdk/openai-compatible@2.0.92 \
	@langchain/openai@1.5.8 @langchain/core@1.4.0) >"$dir/npm" 2>&1; then
	echo "# skipped: npm could not install the clients: $(grep -m 1 'npm error' "$dir/npm")"
	exit 77
fi
must_serve server "$model" --alias tale --port 0 --no-cache --no-replay --quiet
wide=$url
must_serve narrow "$model" --alias tale --port 0 --no-cache --no-replay --quiet \
	--parallel 1 --queue 1 --device ref --threads 1
narrow=$url
# Forms of calls whose names come first, so that arguments can be told while they are generated.
echo '{% for m in messages %}{{ m.content }}{% endfor %}{# [TOOL_CALLS] [ARGS] #}' >"$dir/named.jinja"
echo '{% for m in messages %}{{ m.content }}{% endfor %}{# <tool_call> <function= #}' >"$dir/elements.jinja"
for form in named elements; do
	must_serve $form "$model" --alias tale --port 0 --no-cache --no-replay --quiet --template "$dir/$form.jinja"
	eval "$form=\$url"
done
for client in openai anthropic ollama ai langchain events; do
	check "the client of $client" timeout 300 node "$dir/$client.mjs" "$wide" "$narrow" "$named" "$elements"
done
see=${JITRUN_SHARED:-$top/../shared}/golden-more/see-qwen3vl-a
if [ -d "$see" ]; then
	node "$dir/seeing.mjs" "$see" "$dir/seeing" || exit 1
	must_serve seeing "$dir/seeing" --port 0 --no-cache --no-replay --quiet --context 512 --threads 2
	check "pictures" timeout 300 node "$dir/pictures.mjs" "$url" "$see/image0.png" "$see/image1.png"
else
	echo "# there is no $see: no client sends pictures"
fi
styles=${JITRUN_SHARED:-$top/../shared}/models
if [ -d "$styles/tale-llama-shout" ]; then
	must_serve styles "$styles/tale-llama" --alias tale --port 0 --no-cache --no-replay --quiet --threads 2 \
		--lora shout="$styles/tale-llama-shout" --lora whisper="$styles/tale-llama-whisper"
	check "adapters by name" timeout 300 node "$dir/styles.mjs" "$url"
else
	echo "# there is no $styles/tale-llama-shout: no client chooses an adapter"
fi
for server in $servers; do
	kill $server
	wait $server
	check "a server ends as asked" [ $? = 0 ]
done
servers=
finish
