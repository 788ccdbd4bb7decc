#!/bin/bash
# Runs the check, and train.py for some steps, where .gpu/ was copied to: bash benchmarks/gpu/run.sh [OPTION ...]
# Options are those of benchmarks.gpu.check. Results are in $OUT, by default runs/gpu.
set -u
cd "$(dirname "$0")/../.."
export PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false OUT="${OUT:-$PWD/runs/gpu}"
work="${TMPDIR:-/tmp}/gamespiel-gpu-$(id -u)"
mkdir -p "$OUT" "$work"
[ -f .gpu/site.tar.gz ] && tar -xzf .gpu/site.tar.gz -C "$work"
export PYTHONPATH="$PWD:$work/site${PYTHONPATH:+:$PYTHONPATH}"

more=()
[ -d "$work/tokenizer" ] && more+=(--tokenizer "$work/tokenizer")
# The parts may come one after the other: those of earlier calls are kept.
mkdir -p "$work/smollm2"
cp .gpu-smollm2/part-* "$work/smollm2/" 2> /dev/null
if compgen -G "$work/smollm2/part-*" > /dev/null && cat "$work"/smollm2/part-* | gunzip > "$work/smollm2.gguf" 2> /dev/null; then
    more+=(--smollm2 "$work/smollm2.gguf")
fi

nvidia-smi > "$OUT/nvidia-smi.txt" 2>&1
python3 -m benchmarks.gpu.check --out "$OUT" "${more[@]}" "$@" 2>&1 | tee "$OUT/check.log" | cut -c1-1500

# The command line, with a checkpoint, an evaluation, and a resumption on the CPU.
run="$work/tiny-run"
rm -rf "$run"
( timeout 60 python3 train.py --preset tiny --ppo.num_train_steps 3 --run.checkpoint_every 2 --run.eval_games 20 \
        --run.exact_every 0 --output_dir "$run" \
    && timeout 40 python3 train.py --resume "$run" --run.device cpu --ppo.num_train_steps 4 ) > "$OUT/train.log" 2>&1
echo "train.py: $?"
tail -5 "$OUT/train.log"
