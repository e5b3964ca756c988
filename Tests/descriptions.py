#!/usr/bin/env python3
"""Lists each place of Sources where a text takes in a value without a description of its own, so that a person would read
the spelling of a Swift case or structure.

    swift build && python3 Tests/descriptions.py [MODULE …]

Each module is type-checked together with an interpolation that takes any value and is deprecated; one for values with a description is preferred to
it. It takes some minutes. Exit 1 when there is such a place outside of `preconditionFailure` and the places that are excepted below.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = "no description"
SHADOW = f"""
extension DefaultStringInterpolation {{
    @available(*, deprecated, message: "{MARK}")
    mutating func appendInterpolation<T>(_ value: T) {{ fatalError() }}
    @available(*, deprecated, message: "{MARK}")
    mutating func appendInterpolation<T>(_ value: T?) {{ fatalError() }}
}}
"""
# What nobody reads, and cases whose spelling is the name that is documented.
EXCEPTED = {
    "Sources/Authentication/schemes/Basic.swift": "a fingerprint",
    "Sources/Transaction/CloseReason.swift": "the case in kebab-case is the name",
    "Sources/Settings/kinds/SettingKind+Caching.swift": "settings of rules have no default to render",
    "Sources/Settings/kinds/SettingKind+Releases.swift": "settings of rules have no default to render",
}
# What matters to the build alone, and how many arguments follow.
DROPPED = {
    "-incremental": 0, "-c": 0, "-emit-module": 0, "-emit-objc-header": 0, "-g": 0, "-enable-batch-mode": 0, "-serialize-diagnostics": 0,
    "-parseable-output": 0, "-emit-dependencies": 0, "-whole-module-optimization": 0, "-warnings-as-errors": 0,
    "-output-file-map": 1, "-emit-module-path": 1, "-index-store-path": 1, "-emit-objc-header-path": 1, "-o": 1, "-j": 1,
    "-emit-const-values-path": 1, "-num-threads": 1,
}


def type_check(arguments, sources, shadow):
    kept, rest = [], iter(arguments[1:])
    for argument in rest:
        if argument == "-Xfrontend":
            value = next(rest)
            if value == "-entry-point-function-name":
                next(rest), next(rest)
            else:
                kept += [argument, value]
        elif argument == "-Xcc":
            kept += [argument, next(rest)]
        elif argument in DROPPED:
            for _ in range(DROPPED[argument]):
                next(rest)
        elif not (argument.startswith("@") or argument.endswith(".swift") or re.fullmatch(r"-j\d+", argument)):
            kept.append(argument)
    return subprocess.run([arguments[0], "-typecheck", *kept, *sources, shadow], capture_output=True, text=True)


def modules(only):
    manifest = (ROOT / ".build/debug.yaml").read_text()
    for name, body in re.findall(r'^  "C\.([A-Za-z]+)-[^"]*debug\.module":\n((?:    .*\n)+)', manifest, re.M):
        arguments = json.loads(re.search(r"^    args: (\[.*\])$", body, re.M).group(1))
        lists = [argument[1:] for argument in arguments if argument.startswith("@")]
        sources = [argument for argument in arguments if argument.endswith(".swift")]
        if lists:
            sources = [line.strip().strip("'\"") for line in open(lists[0]) if line.strip()]
        if sources and sources[0].startswith(f"{ROOT}/Sources/") and (not only or name in only):
            yield name, arguments, sources


def main():
    found, checked = 0, 0
    with tempfile.NamedTemporaryFile("w", suffix=".swift") as shadow:
        shadow.write(SHADOW)
        shadow.flush()
        for name, arguments, sources in modules(sys.argv[1:]):
            result = type_check(arguments, sources, shadow.name)
            checked += 1
            text = result.stdout + result.stderr
            if result.returncode != 0:
                sys.exit(f"{name} cannot be type-checked:\n{text[:2000]}")
            for path, number in sorted(set(re.findall(rf"^{ROOT}/(\S+?):(\d+):\d+: warning: .*{MARK}", text, re.M))):
                line = (ROOT / path).read_text().splitlines()[int(number) - 1].strip()
                if path in EXCEPTED or "preconditionFailure" in line:
                    continue
                print(f"{path}:{number}: {line}", flush=True)
                found += 1
    if checked == 0:
        sys.exit("nothing was checked: run `swift build` first")
    print(f"{checked} modules, {found} texts with a value that has no description")
    sys.exit(1 if found else 0)


main()
