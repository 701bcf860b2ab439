#!/usr/bin/env bash
# scripts/setup.sh -- installs what a build needs: Debian or Ubuntu packages, and LibTorch from the
# torch wheel into .deps/site. Knows what is there already; a second run takes under a second.
#   --tests        also GoogleTest and the Python packages that the tests compare us with
#   --no-install   install nothing, only say what is missing (exit 1 if anything is)
#   --list         print the packages' names; the same on Debian 12 and Ubuntu 24.04
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

torch_version=2.11.0
site=$root/.deps/site
venv=$root/.deps/venv

packages=(
  build-essential g++ cmake ninja-build ccache git pkg-config ca-certificates xz-utils
  python3 python3-venv python3-pip
  libopenmpi-dev openmpi-bin openssh-client libhdf5-dev
  libboost-program-options-dev nlohmann-json3-dev libfmt-dev libssl-dev
  libpcre2-dev libutf8proc-dev libzstd-dev zlib1g-dev libxxhash-dev
  libpng-dev libjpeg-dev libwebp-dev libtiff-dev libgif-dev
  libavformat-dev libavcodec-dev libavutil-dev libswscale-dev
  fonts-noto-color-emoji unicode-cldr-core unicode-data python3-fonttools
)
test_packages=(libgtest-dev)

# CUDA libraries that libtorch_cuda.so loads, with the wheel that brings each: installed where nvcc
# is, unless the toolkit or the system has the library already.
cuda_wheels=(
  "libcublas.so.13 nvidia-cublas==13.1.0.3"
  "libcudnn.so.9 nvidia-cudnn-cu13==9.19.0.56"
  "libcufft.so.12 nvidia-cufft==12.0.0.61"
  "libcufile.so.0 nvidia-cufile==1.15.1.6"
  "libcurand.so.10 nvidia-curand==10.4.0.35"
  "libcusolver.so.12 nvidia-cusolver==12.0.4.66"
  "libcusparse.so.12 nvidia-cusparse==12.6.3.3"
  "libcusparseLt.so.0 nvidia-cusparselt-cu13==0.8.0"
  "libnccl.so.2 nvidia-nccl-cu13==2.28.9"
  "libnvJitLink.so.13 nvidia-nvjitlink==13.0.88"
  "libnvrtc.so.13 nvidia-cuda-nvrtc==13.0.88"
  "libnvshmem_host.so.3 nvidia-nvshmem-cu13==3.4.5"
)

install=yes tests=no list=no
for argument in "$@"; do
  case $argument in
    --tests) tests=yes ;;
    --no-install) install=no ;;
    --list) list=yes ;;
    -h | --help)
      sed -n '2,6s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) die "unknown option $argument" "scripts/setup.sh [--tests] [--no-install] [--list]" ;;
  esac
done
[[ $tests == no ]] || packages+=("${test_packages[@]}")
if [[ $list == yes ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

missing=()  # one line each, for --no-install

# lacks THING COMMAND...: notes the thing under --no-install, else runs the command that brings it.
lacks() {
  local thing=$1
  shift
  if [[ $install == no ]]; then
    missing+=("$thing")
  else
    note "setup: $thing"
    "$@"
  fi
}

# ---- packages of the system ---------------------------------------------------------------------

absent_packages() {
  local present
  present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
    awk '$1 == "installed" {print $2}' || true)
  comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) <(sort -u <<<"$present")
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    have sudo || die "packages are missing and neither root nor sudo is there" "run as root: $*"
    sudo "$@"
  fi
}

install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null >"$root/.deps/apt.log" 2>&1 ||
    {
      tail -n 20 "$root/.deps/apt.log" >&2
      die "apt-get could not install the packages" "see $root/.deps/apt.log"
    }
}

system_packages() {
  if ! have dpkg-query; then
    note "setup: no dpkg here; the packages this needs are listed at the top of scripts/setup.sh"
    return
  fi
  local absent
  mapfile -t absent < <(absent_packages)
  ((${#absent[@]} == 0)) || lacks "packages: ${absent[*]}" install_packages "${absent[@]}"
}

# ---- Python -------------------------------------------------------------------------------------

system_python() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if have "$candidate" && "$candidate" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  die "no Python of 3.11 or later with the module ensurepip" "install python3 and python3-venv"
}

make_venv() {
  rm -rf "$venv" "$venv.draft"
  "$(system_python)" -m venv "$venv"
}

have_venv() { [[ -x $venv/bin/pip ]] && "$venv/bin/python" -c '' 2>/dev/null; }

pip_install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps "$@" </dev/null
}

# ---- LibTorch -----------------------------------------------------------------------------------

# A LibTorch that the user names, or ours: every library is there and as large as the wheel's list says.
have_torch() {
  [[ -z ${VLRERANK_TORCH_DIR:-} || ! -f $VLRERANK_TORCH_DIR/include/ATen/core/Tensor.h ]] || return 0
  local record=$site/torch-$torch_version.dist-info/RECORD
  [[ -f $record && -f $site/torch/include/ATen/core/Tensor.h ]] || return 1
  [[ -f $site/nvidia/cu13/lib/libcudart.so.13 && -f $site/nvidia/cu13/lib/libcupti.so.13 ]] || return 1
  cmp -s <(tr -d '\r' <"$record" | awk -F, '$1 ~ /^torch\/lib\/[^\/]*\.so/ {print $3, $1}' | sort) \
    <(cd "$site" && stat -c '%s %n' torch/lib/*.so* | sort)
}

install_torch() {
  rm -rf "$site.draft"
  pip_install --target "$site.draft" "torch==$torch_version" 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*'
  rm -rf "$site"
  mv "$site.draft" "$site"
  have_torch || die "LibTorch in $site is not whole" "check the disk's space and run scripts/setup.sh again"
}

find_nvcc() { command -v nvcc || { [[ -x /usr/local/cuda/bin/nvcc ]] && echo /usr/local/cuda/bin/nvcc; }; }

# have_library NAME TOOLKIT: in the wheels' folders, the toolkit, or the system.
have_library() {
  compgen -G "$site/nvidia/*/lib/$1" >/dev/null || [[ -e $2/lib64/$1 ]] || ldconfig -p 2>/dev/null | grep -qF "$1 "
}

cuda_libraries() {
  local nvcc toolkit entry library wheel wheels=()
  nvcc=$(find_nvcc) || return 0
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  for entry in "${cuda_wheels[@]}"; do
    read -r library wheel <<<"$entry"
    have_library "$library" "$toolkit" || wheels+=("$wheel")
  done
  ((${#wheels[@]} == 0)) || lacks "CUDA libraries for LibTorch: ${wheels[*]}" install_cuda_libraries "${wheels[@]}"
}

# Beside torch, where its own search path looks; unpacked elsewhere first, so that a broken download leaves nothing.
install_cuda_libraries() {
  local draft=$root/.deps/cuda.draft
  rm -rf "$draft"
  pip_install --target "$draft" "$@"
  cp -a "$draft/." "$site/"
  rm -rf "$draft"
}

# ---- the tests' Python packages -----------------------------------------------------------------

have_test_packages() {
  [[ -f $venv/.tests && ! scripts/requirements-tests.txt -nt $venv/.tests && ! scripts/cuda-stubs.sh -nt $venv/.tests ]]
}

# torch itself is the one in .deps/site, found through a .pth file. On a machine without CUDA its
# Python half still wants CUDA's libraries: stand-ins are loaded first.
install_test_packages() {
  local packages_folder
  pip_install -r scripts/requirements-tests.txt
  scripts/cuda-stubs.sh "$venv/cuda-stubs"
  packages_folder=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  cat >"$packages_folder/vlrerank_torch.py" <<'PY'
"""Loads the stand-ins of CUDA's libraries, so that `import torch` finds them (scripts/cuda-stubs.sh)."""
import ctypes
import glob
import os
import sys

for path in glob.glob(os.path.join(sys.prefix, "cuda-stubs", "*.so.*")):
    ctypes.CDLL(path)
PY
  printf '%s\nimport vlrerank_torch\n' "$site" >"$packages_folder/vlrerank_torch.pth"
  "$venv/bin/python" -c 'import torch, transformers, peft, tensorboard, h5py' ||
    die "the tests' Python packages do not import" "remove $venv and run scripts/setup.sh --tests again"
  touch "$venv/.tests"
}

mkdir -p "$root/.deps"
exec 9>"$root/.deps/setup.lock"
flock 9
system_packages
have_venv || lacks "a Python environment in .deps/venv" make_venv
have_torch || lacks "LibTorch $torch_version in .deps/site (0.6 GB to fetch)" install_torch
cuda_libraries
[[ $tests == no ]] || have_test_packages || lacks "the tests' Python packages in .deps/venv" install_test_packages

if ((${#missing[@]} > 0)); then
  say "missing:"
  printf '  %s\n' "${missing[@]}"
  say "scripts/setup.sh$([[ $tests == no ]] || echo ' --tests') installs all of it"
  exit 1
fi
