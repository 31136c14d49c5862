# What building for AArch64 from here needs; ./dev reads this.
# AArch64 from here: a compiler, an emulator, and libraries for arm64, which are unpacked beside the build and not installed.
AARCH64_PACKAGES=(g++-aarch64-linux-gnu qemu-user)
AARCH64_LIBRARIES=(libhwy-dev libhwy1 libsimdjson-dev libsimdjson14 libxxhash-dev libxxhash0 libluajit-5.1-dev libluajit-5.1-2
  libutf8proc-dev libutf8proc2 libonig-dev libonig5 libspng-dev libspng0 libturbojpeg0-dev libturbojpeg0 libwebp-dev libwebp7
  zlib1g-dev zlib1g
  libflatbuffers-dev libflatbuffers2 libgtest-dev librapidcheck-dev)

# The packages for AArch64. Its libraries come with apt's own checks of what it loads, but through state of its own, so that this
# system stays one of its own architecture; they lie in build/deps/aarch64.
aarch64_deps() {
  local folder=$PWD/build/deps/aarch64 state=$PWD/build/deps/aarch64-apt file
  install "${AARCH64_PACKAGES[@]}"
  [ "$(cat "$folder/packages" 2>/dev/null)" != "${AARCH64_LIBRARIES[*]}" ] || return 0
  command -v apt-get >/dev/null || { echo "dev: not a Debian system: put the libraries for arm64 into $folder" >&2; return 1; }
  rm -rf "$folder" "$state"
  mkdir -p "$folder" "$state/state/lists/partial" "$state/cache/archives/partial" "$state/packages"
  : >"$state/status"
  local apt=(apt-get -qq -o Dir::State="$state/state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache"
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)")
  say "libraries for arm64 into build/deps/aarch64"
  { "${apt[@]}" update || true; } >&2
  (cd "$state/packages" && "${apt[@]}" download "${AARCH64_LIBRARIES[@]}") >&2
  for file in "$state"/packages/*.deb; do dpkg-deb -x "$file" "$folder"; done
  echo "${AARCH64_LIBRARIES[*]}" >"$folder/packages"
  rm -rf "$state"
}
