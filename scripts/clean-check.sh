#!/usr/bin/env bash
# scripts/clean-check.sh -- proves the two commands on a fresh machine: a Debian 12 made by debootstrap, a bare clone of HEAD,
# no caches. Needs root, debootstrap, 12 GB of disk. Runs scripts/demo.sh and scripts/test.sh unless told others.
#   --folder PATH      where the machine is made (default /var/tmp/vlrerank-clean)
#   --keep             leave it there, and use what a kept one holds
#   --ubuntu-packages  only print the apt-get line for Ubuntu 24.04
#   COMMAND ...        run these instead, each one argument, such as 'scripts/test.sh -L unit'
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

folder=/var/tmp/vlrerank-clean
keep=no
commands=()
while (($# > 0)); do
  case $1 in
    --folder)
      folder=${2:?--folder needs a path}
      shift
      ;;
    --keep) keep=yes ;;
    --ubuntu-packages)
      say "apt-get install --no-install-recommends $(scripts/setup.sh --tests --list | tr '\n' ' ')"
      exit 0
      ;;
    -h | --help)
      sed -n '2,7s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    -*) die "unknown option $1" "see scripts/clean-check.sh --help" ;;
    *) commands+=("$1") ;;
  esac
  shift
done
((${#commands[@]} > 0)) || commands=(scripts/demo.sh scripts/test.sh)

((EUID == 0)) || die "making a machine needs root" "sudo scripts/clean-check.sh"
have debootstrap || die "debootstrap is missing" "apt-get install debootstrap"


release=bookworm
clone=$folder/root/vlrerank

# Where this machine's own apt gets that release from.
mirror() {
  # shellcheck disable=SC2016  # apt's own notation
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $release" | grep . | head -n 1 ||
    die "this machine's apt knows no $release" "add a source of Debian 12 to apt, then apt-get update"
}

make_machine() {
  if [[ -x $folder/usr/bin/git ]]; then
    say "   kept: $folder"
    return
  fi
  local uri log=$folder.log file
  uri=$(mirror)
  rm -rf "$folder"
  debootstrap --variant=minbase --include=ca-certificates,git "$release" "$folder" "$uri" >"$log" 2>&1 ||
    die "debootstrap failed" "see $log"
  # How this machine reaches its registries: proxies and certificates, nothing else.
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$folder/etc/host-certificates.crt"
  [[ ! -f /etc/pip.conf ]] || cp /etc/pip.conf "$folder/etc/"
  for file in /etc/apt/apt.conf.d/*; do
    ! grep -qs 'Acquire::' "$file" || cp "$file" "$folder/etc/apt/apt.conf.d/"
  done
}

clone_head() {
  if [[ -d $clone/.git ]]; then
    git -C "$clone" -c safe.directory='*' fetch -q "$root" HEAD
    git -C "$clone" checkout -q -f FETCH_HEAD
  else
    git -c safe.directory='*' clone -q --no-hardlinks "file://$root" "$clone"
  fi
  say "   $(git -C "$clone" log -1 --format='%h %s')"
}

# In a mount namespace of its own: the mounts vanish with the command.
inside() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --propagation private bash -c '
    set -e
    mount -t proc proc "$0/proc"
    mount -t sysfs -o ro sysfs "$0/sys"
    mount -t tmpfs tmpfs "$0/dev/shm"
    mount -t devpts devpts "$0/dev/pts"
    exec chroot "$0" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
      PIP_CERT=/etc/host-certificates.crt PIP_NO_CACHE_DIR=1 bash -c "cd /root/vlrerank && $1"' "$folder" "$1" </dev/null
}

stage "make a Debian 12" make_machine
stage "clone HEAD" clone_head
for command in "${commands[@]}"; do
  stage "$command" inside "$command"
done
stage_table
[[ $keep == yes ]] || rm -rf --one-file-system "$folder"
good "clean-check: passed"
