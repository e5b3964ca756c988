import JSON
import Message

/// The index of a Python project in JSON (PEP 691, PEP 700): `files`, each with `filename` and `upload-time`, and `versions`.
struct PythonIndex {
    private struct File {
        let name: String
        let published: WallTime?
        let range: Range<Int>
    }

    private var files: [File] = []
    /// The elements of `versions`, in their order.
    private var versions: [(name: String, range: Range<Int>)] = []
    private(set) var isAmbiguous = false

    init(_ text: [UInt8]) throws(JSONError) {
        var scanner = JSONScanner(text)
        var seen: Set<String> = []
        guard try scanner.kind() == .object else { throw .unexpectedByte(at: scanner.position) }
        try scanner.object { (scanner, name, _) throws(JSONError) in
            guard ["files", "versions"].contains(name), try scanner.kind() == .array else {
                return _ = try scanner.skipValue()
            }
            if !seen.insert(name).inserted { isAmbiguous = true }
            if name == "files" { try readFiles(&scanner) } else { try readVersions(&scanner) }
        }
        try scanner.end()
    }

    private mutating func readFiles(_ scanner: inout JSONScanner) throws(JSONError) {
        try scanner.array { (scanner) throws(JSONError) in
            // What is no file has no date either.
            guard try scanner.kind() == .object else {
                return files.append(File(name: "", published: nil, range: try scanner.skipValue()))
            }
            let start = scanner.position
            var name = ""
            var times: [WallTime] = []
            var isUndated = false
            try scanner.object { (scanner, member, _) throws(JSONError) in
                guard try scanner.kind() == .string, member == "filename" || member == "upload-time" else {
                    return _ = try scanner.skipValue()
                }
                let value = try scanner.string()
                if member == "filename" {
                    name = value
                } else if let time = parseTimestamp(value.utf8) {
                    times.append(time)
                } else {
                    isUndated = true
                }
            }
            // Of several times the latest counts, whichever a client would take.
            files.append(
                File(name: name, published: isUndated ? nil : times.max(), range: start..<scanner.position))
        }
    }

    private mutating func readVersions(_ scanner: inout JSONScanner) throws(JSONError) {
        try scanner.array { (scanner) throws(JSONError) in
            let isText = try scanner.kind() == .string
            let start = scanner.position
            let name = isText ? try scanner.string() : ""
            if !isText { try scanner.skipValue() }
            versions.append((name, start..<scanner.position))
        }
    }

    /// What has to change so that no file is left that the judge removes.
    func edit(_ judge: inout IndexJudge) -> JSONEdit {
        let removed = files.map { judge.removes($0.name, published: $0.published) }
        var edit = JSONEdit()
        guard removed.contains(true) else { return edit }
        edit.remove(files.map(\.range)) { removed[$0] }
        // A version goes with the last of its files.
        let (kept, gone) = (texts(where: { !removed[$0] }), texts(where: { removed[$0] }))
        edit.remove(versions.map(\.range)) { index in
            let version = versions[index].name.lowercased()
            return gone.contains(version) && !kept.contains(version)
        }
        return edit
    }

    /// The versions of files.
    private func texts(where isChosen: (Int) -> Bool) -> Set<String> {
        Set(files.indices.filter(isChosen).compactMap { version(ofFile: files[$0].name) })
    }
}

/// The version in the name of a wheel or a source distribution, in lower case (PEP 427, PEP 625). Returns nil if there is none.
private func version(ofFile name: String) -> String? {
    let parts = name.lowercased().split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 2 else { return nil }
    if name.hasSuffix(".whl") || name.hasSuffix(".egg") { return String(parts[1]) }
    var version = String(parts[parts.count - 1])
    for suffix in [".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip"] where version.hasSuffix(suffix) {
        version.removeLast(suffix.count)
        return version
    }
    return nil
}
