import JSON
import Message

/// The document about an npm package: which versions there are, when they were published, and which tags point to them.
struct NpmIndex {
    /// A member of an object: its name, and where it lies.
    private struct Member {
        let name: String
        let range: Range<Int>
    }

    /// A member of `dist-tags`. `value` is where the version stands.
    private struct Tag {
        let name: String
        let version: String
        let range: Range<Int>
        let value: Range<Int>
    }

    /// The document has the members that the one about a package has, and no other document of a registry: `versions`, and `dist-tags` or `time`, all
    /// of them objects.
    private(set) var hasFormOfIndex = false
    private var versions: [Member] = []
    private var times: [Member] = []
    private var tags: [Tag] = []
    /// When each version was published. Of a name that occurs twice the later time, whichever a client would take.
    private var published: [String: WallTime] = [:]
    /// Behind the member `versions`.
    private var endOfVersions = 0
    /// The registry itself says which versions npm must not install.
    private var hasRestrictions = false
    /// One of the members occurs twice, so clients may read different versions from the document.
    private(set) var isAmbiguous = false

    init(_ text: [UInt8]) throws(JSONError) {
        var scanner = JSONScanner(text)
        var seen: Set<String> = []
        var objects: Set<String> = []
        guard try scanner.kind() == .object else { throw .unexpectedByte(at: scanner.position) }
        try scanner.object { (scanner, name, _) throws(JSONError) in
            if name == "policyRestrictions" { hasRestrictions = true }
            guard ["versions", "time", "dist-tags"].contains(name) else { return _ = try scanner.skipValue() }
            if !seen.insert(name).inserted { isAmbiguous = true }
            guard try scanner.kind() == .object else { return _ = try scanner.skipValue() }
            objects.insert(name)
            switch name {
            case "versions": try readVersions(&scanner)
            case "time": try readTimes(&scanner)
            default: try readTags(&scanner)
            }
        }
        try scanner.end()
        hasFormOfIndex = objects.contains("versions") && objects.count > 1
    }

    private mutating func readVersions(_ scanner: inout JSONScanner) throws(JSONError) {
        try scanner.object { (scanner, name, start) throws(JSONError) in
            let value = try scanner.skipValue()
            versions.append(Member(name: name, range: start..<value.upperBound))
        }
        endOfVersions = scanner.position
    }

    private mutating func readTimes(_ scanner: inout JSONScanner) throws(JSONError) {
        try scanner.object { (scanner, name, start) throws(JSONError) in
            if try scanner.kind() != .string {
                try scanner.skipValue()
            } else if let time = parseTimestamp(try scanner.string().utf8) {
                published[name] = published[name].map { max($0, time) } ?? time
            }
            times.append(Member(name: name, range: start..<scanner.position))
        }
    }

    private mutating func readTags(_ scanner: inout JSONScanner) throws(JSONError) {
        try scanner.object { (scanner, name, start) throws(JSONError) in
            let isText = try scanner.kind() == .string
            let first = scanner.position
            let version = isText ? try scanner.string() : ""
            if !isText { try scanner.skipValue() }
            tags.append(
                Tag(
                    name: name, version: version, range: start..<scanner.position, value: first..<scanner.position))
        }
    }

    /// What has to change so that no version is left that the judge removes.
    func edit(_ judge: inout IndexJudge) -> JSONEdit {
        var removed: Set<String> = []
        for version in versions where !removed.contains(version.name) {
            if judge.removes(version.name, published: published[version.name]) { removed.insert(version.name) }
        }
        var edit = JSONEdit()
        guard !removed.isEmpty else { return edit }
        edit.remove(versions.map(\.range)) { removed.contains(versions[$0].name) }
        edit.remove(times.map(\.range)) { removed.contains(times[$0].name) }
        let kept = versions.map(\.name).filter { !removed.contains($0) }
        editTags(&edit, removed, kept: kept)
        if !hasRestrictions { edit.replace(endOfVersions..<endOfVersions, by: restrictions(removed, judge.result)) }
        return edit
    }

    /// Tells npm which versions there are that it must not install, and what it shows to who asks for one. Without it, a version that was removed
    /// looks like one that never was. Other tools do not know the member.
    private func restrictions(_ removed: Set<String>, _ result: FilteredIndex) -> [UInt8] {
        let reasons = result.withheld.suffix(Self.reasonsMax).map(\.text).joined(separator: "; ")
        let others = result.withheld.count > Self.reasonsMax ? "; and others before" : ""
        let versions = removed.sorted().map { "\(jsonString($0)):{\"version\":\(jsonString($0))}" }.joined(
            separator: ",")
        let message = jsonString("larder: \(reasons)\(others)")
        return Array(",\"policyRestrictions\":{\"message\":\(message),\"versions\":{\(versions)}}".utf8)
    }

    /// So many versions are explained, the last of the document.
    private static let reasonsMax = 5

    /// A tag that points to a removed version goes, except `latest`, which npm needs: it moves to an older version.
    private func editTags(_ edit: inout JSONEdit, _ removed: Set<String>, kept: [String]) {
        var gone: Set<Int> = []
        for (index, tag) in tags.enumerated() where removed.contains(tag.version) {
            if tag.name == "latest", let next = latest(before: tag.version, among: kept) {
                edit.replace(tag.value, by: Array("\"\(next)\"".utf8))
            } else {
                gone.insert(index)
            }
        }
        edit.remove(tags.map(\.range)) { gone.contains($0) }
    }

    /// The highest release that is not higher than the one that was removed, as npm itself chooses for its option `before`. If there is
    /// none, the highest of all, releases first.
    private func latest(before version: String, among kept: [String]) -> String? {
        let all = kept.compactMap { name in SemanticVersion(name).map { (name: name, version: $0) } }
        let releases = all.filter { !$0.version.isPrerelease }
        let bound = SemanticVersion(version)
        let older = releases.filter { release in bound.map { release.version <= $0 } ?? true }
        for choice in [older, releases, all] {
            if let highest = choice.max(by: { $0.version < $1.version }) { return highest.name }
        }
        return nil
    }
}
