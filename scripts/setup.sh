#!/bin/sh
# Installs the Debian packages that Carousel needs: those that are missing and no others.
# Usage: sh scripts/setup.sh build|check|pictures ...
#   build      to build the library, its programs and its tests
#   check      what .ci/run needs beyond that: clang, sanitizers, format, lint
#   pictures   gnuplot, with which char_lm draws the losses of a run; up to 100 MB with what it needs
set -eu

build='cmake ninja-build g++ pkgconf libopenblas-openmp-dev libhwy-dev libmd-dev libfmt-dev libcereal-dev
  nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev'
check='clang-14 libclang-rt-14-dev libomp-14-dev libopenblas-serial-dev clang-format-14 clang-tidy-14'
pictures='gnuplot-nox'

missing() {
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p')
  printf '%s\n' $wanted | grep -vxF -e "$installed" || true
}

give_up() {
  echo "set-up: $1; these Debian packages must be installed first:" $(missing) >&2
  exit 1
}

find_root() {  # how to become root, in as_root
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif sudo -n true 2>/dev/null; then
    as_root='sudo -n'
  elif [ -t 0 ] && command -v sudo >/dev/null; then
    as_root=sudo  # asks for the password
  else
    give_up 'no right to install packages (neither root nor sudo)'
  fi
}

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

wanted=
for group in "$@"; do
  case $group in
    build) wanted="$wanted $build" ;;
    check) wanted="$wanted $check" ;;
    pictures) wanted="$wanted $pictures" ;;
    *) echo "usage: sh scripts/setup.sh build|check|pictures ..." >&2; exit 2 ;;
  esac
done

packages=$(missing)
[ -n "$packages" ] || exit 0
command -v apt-get >/dev/null || give_up 'no apt-get on this system'
find_root

log=$(mktemp)  # not in build/: root may do the set-up, and somebody else the build
trap 'rm -f "$log"' EXIT
echo "set-up: installing" $packages "(a minute or two)"
# A source that fails to update matters only if the packages are not found.
if ! { apt update || true; apt install --no-install-recommends $packages; } >"$log" 2>&1 </dev/null; then
  tail -n 15 "$log" >&2
  give_up 'apt-get failed'
fi
