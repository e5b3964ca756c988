package import Message
package import Releases
package import Rules

/// What a rule says of the age of what a response offers: `release` and `min_age` together. An object, so that requests without such a rule
/// carry a pointer and no more.
package final class ReleaseRule: Sendable, Hashable {
    package let kind: ReleaseKind
    package let minimumAge: MinimumAge
    /// The name of the package. Nil if the path does not tell.
    package let package: String?

    /// - Parameters:
    ///   - path: as sent, or as an origin reads it.
    ///   - conditions: those of the rule that matched the path.
    package init(_ kind: ReleaseKind, _ minimumAge: MinimumAge, path: ArraySlice<UInt8>, conditions: RuleConditions) {
        self.kind = kind
        self.minimumAge = minimumAge
        package = packageName(kind, path, conditions)
    }

    private init(_ kind: ReleaseKind, _ minimumAge: MinimumAge, package: String?) {
        self.kind = kind
        self.minimumAge = minimumAge
        self.package = package
    }

    /// The rule that restricts as much as each of these, which are what the readings of one path lead to. Nil if there is none, or if it is not clear
    /// which package is meant.
    static func common(of rules: Set<ReleaseRule>) -> ReleaseRule? {
        guard rules.count > 1 else { return rules.first }
        let certain = rules.filter { $0.kind != .npmDocument }
        guard let any = rules.first, rules.allSatisfy({ $0.minimumAge == any.minimumAge }) else { return nil }
        if certain.isEmpty {
            // A path that may be anything is not refused because of a name that does not matter.
            return any.minimumAge.isSameForAll ? ReleaseRule(.npmDocument, any.minimumAge, package: nil) : nil
        }
        // What is filtered if it has the form of an index is filtered as well where the path says that it is one.
        guard certain.count == 1, let one = certain.first, one.kind == .npmIndex,
            rules.allSatisfy({ $0.package == one.package })
        else { return nil }
        return one
    }

    package static func == (a: ReleaseRule, b: ReleaseRule) -> Bool {
        a === b || (a.kind == b.kind && a.package == b.package && a.minimumAge == b.minimumAge)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(package)
        hasher.combine(minimumAge)
    }

    /// The verdict on a file: a success whose `Last-Modified` says when it was published.
    ///
    /// The field is not compared with `Date` here. A time in the future is a time, and opens late.
    package func verdict(onFileWith fields: Fields, status: UInt16, path: ArraySlice<UInt8>, now: WallTime) -> (
        AgeVerdict, file: String
    ) {
        let file = lastSegment(of: path)
        // A redirect or an error offers no file.
        guard StatusClass(status) == .successful || status == 304 else { return (.passes, file) }
        let modified = fields.all(.lastModified).map { parseHTTPDate($0, now: now) }
        // Of several times the latest counts, and one that is none makes the file undated.
        let published = modified.contains(nil) ? nil : modified.compactMap(\.self).max()
        // A client that gets a 304 has the file, and the field is optional there (RFC 9110 §15.4.5).
        if status == 304, published == nil { return (.passes, file) }
        return (minimumAge.verdict(on: package, of: kind, published: published, now: now), file)
    }
}

private func packageName(_ kind: ReleaseKind, _ path: ArraySlice<UInt8>, _ conditions: RuleConditions) -> String? {
    switch kind {
    case .pythonFile: pythonPackage(ofFile: lastSegment(of: path))
    case .file, .npmIndex, .npmDocument, .pythonIndex: packageName(conditions.placeholders(in: path))
    }
}

private func packageName(_ placeholders: [String: String]) -> String? {
    guard let name = placeholders["package"] ?? placeholders["project"], !name.isEmpty else { return nil }
    return placeholders["scope"].map { "@\($0)/\(name)" } ?? name
}
