/// The name that was probably meant: the most similar of `names` by edit distance. Returns nil if none is similar.
///
/// A name is similar if at most a third of its letters differ, and never all letters of a short name.
package func nearestName(to name: String, among names: some Sequence<String>) -> String? {
    let bound = max(1, name.utf8.count / 3)
    var best: (name: String, distance: Int)?
    for candidate in names {
        let distance = editDistance(name, candidate)
        guard distance <= bound, distance < candidate.utf8.count, distance < best?.distance ?? .max else { continue }
        best = (candidate, distance)
    }
    return best?.name
}

/// The number of insertions, deletions, substitutions and swaps of neighbours that lead from one to the other. Case is ignored.
package func editDistance(_ a: String, _ b: String) -> Int {
    let (a, b) = (Array(a.lowercased().utf8), Array(b.lowercased().utf8))
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
        var row = [i + 1]
        for j in b.indices {
            var cost = min(row[j] + 1, last[j + 1] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, beforeLast[j - 1] + 1) }
            row.append(cost)
        }
        beforeLast = last
        last = row
    }
    return last[b.count]
}
