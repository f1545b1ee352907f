# Debian packages that the tests need are downloaded and unpacked into a folder of the build, not
# installed: an installed server would start, and an ordinary user cannot install. Nothing of apt's or
# dpkg's own is changed. Sourced; the caller has LC_ALL=C.
# shellcheck shell=sh

# bring_debs FOLDER PACKAGE...: into FOLDER, which is made, and which is whole if it is there. Returns 1
# when a package could not be had; FOLDER.log has apt's own words.
bring_debs() {
    debs_folder=$1
    shift
    rm -rf -- "$debs_folder.new"
    mkdir -p -- "$debs_folder.new/debs"
    if ! debs_download "$@" >"$debs_folder.log" 2>&1; then
        rm -rf -- "$debs_folder.new"
        return 1
    fi
    for deb in "$debs_folder.new"/debs/*.deb; do
        dpkg-deb -x "$deb" "$debs_folder.new" || return 1
    done
    rm -rf -- "$debs_folder.new/debs" "$debs_folder"
    mv -- "$debs_folder.new" "$debs_folder"
}

# With apt's lists as they are; where there are none, or the mirror no longer has what they name, with
# fresh ones in a folder of our own.
debs_download() (
    cd -- "$debs_folder.new/debs" || return 1
    debs_get "$@" && return 0
    mkdir -p apt/lists/partial apt/cache/archives/partial
    printf 'Dir::State::Lists "%s/apt/lists";\nDir::Cache "%s/apt/cache";\n' "$PWD" "$PWD" >apt.conf
    APT_CONFIG=$PWD/apt.conf
    export APT_CONFIG
    # One source of several that fails is no reason to give up.
    apt-get -q -o Acquire::Retries=0 -o Acquire::http::Timeout=20 update || :
    debs_get "$@"
)

# The packages, and what apt would install with them of libraries that the machine does not have.
debs_get() {
    debs_uris=$(apt-get -qq -y --no-install-recommends --print-uris install "$@") || return 1
    # shellcheck disable=SC2046 # names of packages
    apt-get -q download "$@" $(printf '%s\n' "$debs_uris" |
        sed -n "s/^'[^']*' \(lib[^_]*\)_.*/\1/p" | grep -v -e '-dev$')
}
