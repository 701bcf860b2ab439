#!/usr/bin/env bash
# scripts/cuda-stubs.sh FOLDER -- empty stand-ins for the CUDA libraries that Python's `import torch`
# wants from the wheel, so that the tests' CPU-only torch costs no 2 GiB of CUDA packages. Each has
# the right name, the symbols that torch refers to, and ends the program when one is called.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

folder=${1:?usage: scripts/cuda-stubs.sh FOLDER}
libraries=("$root"/.deps/site/torch/lib/libtorch_{cuda,cuda_linalg,nvshmem,python}.so)

# soname, pattern of its symbols
wanted=(
  "libcublas.so.13 ^cublas[^L]"
  "libcublasLt.so.13 ^cublasLt"
  "libcudnn.so.9 ^cudnn"
  "libcufft.so.12 ^cufft"
  "libcusparse.so.12 ^cusparse[^L]"
  "libcusparseLt.so.0 ^cusparseLt"
  "libcurand.so.10 ^curand"
  "libcufile.so.0 ^cuFile"
  "libnccl.so.2 ^nccl"
  "libnvshmem_host.so.3 ^nvshmem"
)

mkdir -p "$folder"
undefined=$(nm -D --undefined-only --with-symbol-versions "${libraries[@]}" | awk '$1 == "U" {print $2}' | sort -u)
for entry in "${wanted[@]}"; do
  read -r soname pattern <<<"$entry"
  names=$(awk -F@ -v pattern="$pattern" '$1 ~ pattern {print $1}' <<<"$undefined" | sort -u)
  {
    echo '#include <stdlib.h>'
    for name in $names; do echo "void $name(void) { abort(); }"; done
  } >"$folder/stub.c"
  options=()
  if grep -q "@$soname\$" <<<"$undefined"; then
    echo "$soname { *; };" >"$folder/stub.map"
    options=("-Wl,--version-script=$folder/stub.map")
  fi
  gcc -shared -fPIC -w -o "$folder/$soname" "-Wl,-soname,$soname" "${options[@]}" "$folder/stub.c"
done
rm -f "$folder/stub.c" "$folder/stub.map"
