import Admin

/// `larder top [--by hits|bytes] [-n N] [PREFIX] [CONDITION]... [--json]`
func topCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let count = try arguments.number(.count, in: 1...10_000) ?? 10
    let key = arguments[.by] ?? "hits"
    guard key == "hits" || key == "bytes" else { throw UsageError("--by takes hits or bytes, not \"\(key)\"") }
    var top = Top<String>(count)
    let isJSON = arguments.has(.json)
    let status = try forEachObject(arguments, console) { line, object in
        top.add(object[key]?.integer ?? 0) { isJSON ? String(decoding: line, as: UTF8.self) : objectLine(object) }
    }
    guard status == ExitStatus.done else { return status }
    for line in (isJSON ? [] : [objectHeading]) + top.values { console.print(line) }
    return status
}

/// The values with the largest weights, in decreasing order. Among equal weights, the first ones stay.
struct Top<Value> {
    private let count: Int
    private var entries: [(weight: Int64, value: Value)] = []

    init(_ count: Int) { self.count = count }

    var values: [Value] { entries.map(\.value) }

    /// - Parameter value: called only if the value is needed.
    mutating func add(_ weight: Int64, _ value: () -> Value) {
        if entries.count == count {
            guard let least = entries.last, least.weight < weight else { return }
            entries.removeLast()
        }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].weight < weight { high = middle } else { low = middle + 1 }
        }
        entries.insert((weight, value()), at: low)
    }
}
