#!/usr/bin/env python3
"""What one request costs by function: the first functions of a callgrind dump, by themselves and with what they call.

    profile.py DUMP REQUESTS [COUNT]

DUMP is what `Benchmarks/run.sh LARDER --keep DIR` leaves in DIR, such as callgrind.miss-pass.6000; REQUESTS is the number at its end.
A call that leads back into a function that is running already ('2 in callgrind's names) is not counted twice.
"""
import collections
import re
import subprocess
import sys


def read(path):
    """Instructions of each function by itself, with what it calls, and how often it was called."""
    names, own, whole, calls = {}, collections.Counter(), collections.Counter(), collections.Counter()
    caller = called = None
    is_call = False

    def name(text):
        number, spelled = re.match(r"\((\d+)\)(?: (.*))?$", text).groups()
        if spelled:
            names[number] = spelled
        return names[number]

    with open(path, errors="replace") as dump:
        for line in dump:
            if line.startswith("fn="):
                caller = name(line[3:].rstrip("\n"))
            elif line.startswith("cfn="):
                called = name(line[4:].rstrip("\n"))
            elif line.startswith("calls="):
                calls[called] += int(line[6:].split()[0])
                is_call = True
            elif caller and line[0] in "0123456789+-*":
                cost = int(line.split()[1])
                if not is_call:
                    own[caller] += cost
                elif called.split("'")[0] != caller.split("'")[0]:
                    whole[caller] += cost
                is_call = False
    for function in own:
        whole[function] += own[function]
    return own, whole, calls


def main():
    path, requests = sys.argv[1], int(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 25
    own, whole, calls = read(path)
    first = {"by itself": own.most_common(4 * count), "with what it calls": whole.most_common(4 * count)}
    symbols = list({symbol for ranking in first.values() for symbol, _ in ranking})
    demangled = subprocess.run(
        ["swift", "demangle", "--simplified"], input="\n".join(symbols), capture_output=True, text=True, check=True)
    readable = dict(zip(symbols, demangled.stdout.split("\n")))
    print(f"{sum(own.values()) / requests:.0f} instructions for one request")
    for title, ranking in first.items():
        # Frames that have all of it say nothing; nor do functions of libraries without symbols.
        shown = [
            (symbol, cost) for symbol, cost in ranking
            if cost < 0.95 * sum(own.values()) and not symbol.startswith("0x")]
        print(f"\n{title}, instructions and calls:")
        for symbol, cost in shown[:count]:
            print(f"{cost / requests:8.0f} {calls[symbol] / requests:7.2f}  {readable[symbol][:110]}")


main()
