#!/bin/sh
# tests/programs/t_sweep.sh - each family that runs from safetensors is one that tests/sweep/sweep.py draws, and each
# that it draws runs. The sweep itself needs PyTorch and is not run here.
set -eu
srcdir=${srcdir:-.}
command -v python3 >/dev/null || exit 77
# Without a class of its own in transformers, or with one that is only a part of a larger model's.
apart=' xverse kimi_k2 qwen3_vl_text qwen2_vl_text qwen2_5_vl_text '
# Encoders, which generate nothing that could be compared; t_text_encoders.c has them.
apart="$apart bert roberta xlm-roberta distilbert mpnet nomic_bert modernbert eurobert gemma3_text-bidirectional "
apart="$apart bert-alibi "
drawn=" $(PYTHONDONTWRITEBYTECODE=1 python3 "$srcdir/tests/sweep/sweep.py" --list | tr '\n' ' ')"
runs=" $(awk -F'|' '/^## What is refused/ { exit }
	/^\| / { gsub(/[` ]/, "", $3); if ($3 ~ /^[a-z]/ && $3 != "model_type") print $3 }' "$srcdir/docs/models.md" |
	tr '\n' ' ')"
[ "$(echo $runs | wc -w)" -gt 30 ] || { echo "docs/models.md has no table of what runs"; exit 1; }
for family in $runs; do
	case "$apart$drawn" in *" $family "*) ;; *) echo "$family runs and is not drawn"; exit 1 ;; esac
done
for family in $drawn; do
	case "$runs" in *" $family "*) ;; *) echo "$family is drawn and does not run"; exit 1 ;; esac
done
