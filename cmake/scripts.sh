# What test/run, examples/run and .ci/run share; read with `source`. The one list of packages, and how they are installed.

# Debian's names. "a|b" is the first that this release has.
build_packages=(
  g++ cmake ninja-build
  libhdf5-dev libtbb-dev libopenblas-dev "libthrust-dev|libcccl-dev"
  libdeflate-dev liblz4-dev libzstd-dev libblosc-dev libaec-dev
  libfmt-dev nlohmann-json3-dev libcli11-dev zlib1g-dev
  libboost-test-dev python3 python3-h5py hdf5-filter-plugin hdf5-filter-plugin-blosc-serial bitshuffle
  dataset-fashion-mnist
)
# Programs that tests of the examples take; where they are not, these tests are skipped.
test_packages=(gnuplot-nox hdf5-tools)
libtorch_packages=(libtorch-dev)
check_packages=(clang-format-16 clang-tidy-16)
fuzz_packages=(clang-16 libclang-rt-16-dev)

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# Prints the packages of the arguments that are not installed, one a line.
missing_packages() {
  local entry name names
  for entry in "$@"; do
    IFS='|' read -ra names <<<"$entry"
    for name in "${names[@]}"; do installed "$name" && continue 2; done
    for name in "${names[@]}"; do
      [[ ${#names[@]} -gt 1 && -z $(apt-cache --quiet=2 show "$name" 2>/dev/null) ]] || break
    done
    echo "$name"
  done
}

# Installs what is missing of the arguments. Without root or sudo, names it and exits with 1.
need_packages() {
  command -v dpkg-query >/dev/null || { echo "needs a Debian or Ubuntu system with these packages: $*" >&2; exit 1; }
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
      echo "missing packages: ${missing[*]}" >&2
      echo "install them as root: apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  mapfile -t missing < <(missing_packages "$@")  # a fresh index may know more names
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >/dev/null </dev/null
}

# Configures a preset; more arguments go to CMake. Uses ccache where it is installed.
configure() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset "$preset" --log-level=STATUS "${launcher[@]}" "$@"
}

# The build folder of a preset, as CMakePresets.json has it.
build_folder() {
  case $1 in
    release) echo build ;;
    host-only) echo build-host ;;
    *) echo "build-$1" ;;
  esac
}
