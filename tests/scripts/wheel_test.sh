#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel of an installed folder is whole, and what is installed from it measures: by pip where there is one, else
# unpacked as pip would.
#
#   tests/scripts/wheel_test.sh BUILD
set -euo pipefail
# shellcheck source=tests/scripts/installed_folder.sh
. "$(dirname "$0")/installed_folder.sh"
installed="$scratch/an installation"
cmake --install "$1" --prefix "$installed" >"$scratch/installed"
export PYTHONDONTWRITEBYTECODE=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1

expect "a folder of something else is refused" 2 "$(code "$root/ci/wheel" "$scratch" --out "$scratch/out")"
expect "the message names it" 1 "$(grep -c "$scratch is no folder that ci/dist made" "$scratch/printed")"
expect "a wheel is made" 0 "$(code "$root/ci/wheel" "$installed" --out "$scratch/out")"
wheel=$(cat "$scratch/printed")
cp "$wheel" "$scratch/first"
"$root/ci/wheel" "$installed" --out "$scratch/out" >/dev/null
expect "the same again" 0 "$(code cmp "$scratch/first" "$wheel")"

unpack() {
  /usr/bin/python3 - "$wheel" "$1" <<'END'
import base64, csv, hashlib, io, pathlib, sys, zipfile

wheel, site = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
assert sorted(row[0] for row in rows) == sorted(wheel.namelist()), "RECORD names what is there"
for name, digest, size in rows:
    data = wheel.read(name)
    path = site / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(wheel.getinfo(name).external_attr >> 16)
    if name != record:
        want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={want}", str(len(data))), name
END
}
expect "its record is right" 0 "$(code unpack "$scratch/site")"
if python3 -m pip --version >/dev/null 2>&1; then
  rm -r "$scratch/site"
  expect "pip installs it" 0 "$(code python3 -m pip install --quiet --no-deps --no-index --target "$scratch/site" "$wheel")"
  expect "without a complaint" "" "$(grep -i warning "$scratch/printed")"
  expect "shells find the completion" 0 "$(code test -s "$scratch/site/share/bash-completion/completions/moegate")"
  expect "with the command" 0 "$(code env PYTHONPATH="$scratch/site" "$scratch/site/bin/moegate" --version)"
fi

rm -rf "$installed"
cd "$scratch"
# The Python that runs it is the one that imports files of kernels.
installed_moegate() { env -u MOEGATE_PYTHON PATH=/nowhere PYTHONPATH="$scratch/site" /usr/bin/python3 -m moegate "$@"; }
cat >mine.py <<'END'
import moegate
assert "/site/moegate/" in moegate.__file__, moegate.__file__

@moegate.variant("moe_sum", "of_the_wheel", backend="host")
def launch(p):
    y = moegate.decode(p.y, "bf16").reshape(p.tokens, p.topk, p.hidden)
    p.out[:] = moegate.encode(p.scale * y.sum(axis=1), "bf16").reshape(p.out.shape)
END
expect "its suites and baselines are there" 0 "$(code installed_moegate list suites)"
expect "it verifies" 0 "$(code installed_moegate verify --device host --suite tiny --filter ^moe_sum/ --variant per_token)"
expect "an unknown command has the program's code" 2 "$(code installed_moegate mesure)"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  expect "kernels in Python, too" 0 "$(code installed_moegate verify --device host --suite tiny --filter ^moe_sum/ --module mine.py --variant of_the_wheel)"
fi
expect "sources without a program say so" 1 "$(code env PYTHONPATH="$root/python" /usr/bin/python3 -m moegate list suites)"
expect "and what to do" 1 "$(grep -c 'not installed from a wheel of ci/wheel' "$scratch/printed")"
finish
