package import Message

/// How old a release has to be before clients get it (`min_age` of a recipe or a cache rule).
///
/// Malicious releases are mostly found and withdrawn within days. Who installs no release of the last days has not installed them.
package struct MinimumAge: Sendable, Hashable {
    /// The age of the packages that `packages` does not name.
    package var age: Seconds
    /// Packages with an age of their own. The first that matches counts.
    package var packages: [PackageAge] = []
    /// Packages that pass whatever their age.
    package var except: [PackagePattern] = []
    /// Nothing that was published at this time or later passes, so that an installation gives the same today and in a year.
    package var cutOff: WallTime?
    /// Packages that pass for a while, for a reason: a security fix that cannot wait.
    package var breakGlass: [BreakGlass] = []
    /// What becomes of a release of which nobody says when it was published.
    package var undated: Undated = .pass
    /// Everything passes. What would have been refused is logged and counted.
    package var isReportOnly = false

    package struct PackageAge: Sendable, Hashable {
        package var package: PackagePattern
        package var age: Seconds

        package init(package: PackagePattern, age: Seconds) {
            self.package = package
            self.age = age
        }
    }

    package struct BreakGlass: Sendable, Hashable {
        package var package: PackagePattern
        /// The first moment at which it does not count any more.
        package var until: WallTime
        package var why: String

        package init(package: PackagePattern, until: WallTime, why: String) {
            self.package = package
            self.until = until
            self.why = why
        }
    }

    package enum Undated: String, CaseIterable, Sendable { case pass, refuse }

    package init(age: Seconds) { self.age = age }

    /// Whether it says the same of all packages.
    package var isSameForAll: Bool { packages.isEmpty && except.isEmpty && breakGlass.isEmpty }
}

/// What a minimum age says of one release at one time.
package enum AgeVerdict: Sendable, Hashable {
    case passes
    /// Nobody says when it was published, and that is allowed.
    case passesUndated
    /// It passes only because the rule reports and does not refuse.
    case reported(AgeObjection)
    case refused(AgeObjection)
}

/// Why a release does not pass.
package enum AgeObjection: Sendable, Hashable {
    case tooYoung(published: WallTime, opens: WallTime)
    /// It was published at the cut-off date or later, and never opens.
    case behindCutOff(published: WallTime)
    case undated
    /// The path can be read in several ways, and the rules say different things of them.
    case unclear
}

extension MinimumAge {
    /// - Parameters:
    ///   - name: the name of the package. Nil if it is not known: no exception counts then.
    ///   - published: nil if nobody says.
    package func verdict(
        on name: String?, of kind: ReleaseKind, published: WallTime?, now: WallTime
    ) -> AgeVerdict {
        if let name {
            if except.contains(where: { $0.matches(name, of: kind) }) { return .passes }
            if breakGlass.contains(where: { now < $0.until && $0.package.matches(name, of: kind) }) { return .passes }
        }
        guard let published else { return undated == .pass ? .passesUndated : objected(.undated) }
        if let cutOff, published >= cutOff { return objected(.behindCutOff(published: published)) }
        let opens = published + age(of: name, kind)
        return now >= opens ? .passes : objected(.tooYoung(published: published, opens: opens))
    }

    private func age(of name: String?, _ kind: ReleaseKind) -> Seconds {
        name.flatMap { name in packages.first { $0.package.matches(name, of: kind) }?.age } ?? age
    }

    private func objected(_ objection: AgeObjection) -> AgeVerdict {
        isReportOnly ? .reported(objection) : .refused(objection)
    }

    /// When the next break-glass entry for the package ends. Nil if none counts now.
    func endOfBreakGlass(for name: String?, _ kind: ReleaseKind, now: WallTime) -> WallTime? {
        guard let name else { return nil }
        return breakGlass.filter { now < $0.until && $0.package.matches(name, of: kind) }.map(\.until).max()
    }
}

/// A release that a client does not get, in words.
package struct Withheld: Sendable, Hashable {
    /// The name of the package, with the version or the file if that is known.
    package let release: String
    package let objection: AgeObjection

    /// - Parameter release: may come from a path or an index. The text goes into heads, so anything but visible ASCII is replaced, and
    ///   no more than 200 characters are kept.
    package init(_ release: String, _ objection: AgeObjection) {
        self.release = String(
            String.UnicodeScalarView(
                release.unicodeScalars.prefix(200).map { (0x20...0x7E).contains($0.value) ? $0 : "?" }))
        self.objection = objection
    }

    /// One sentence: `left-pad 2.0.0 was published 2026-11-22T10:00:00Z and opens 2026-11-25T10:00:00Z`.
    package var text: String {
        switch objection {
        case .tooYoung(let published, let opens): "\(release) was published \(utc(published)) and opens \(utc(opens))"
        case .behindCutOff(let published):
            "\(release) was published \(utc(published)), which is not before the cut-off date of the rule"
        case .undated: "nobody says when \(release) was published"
        case .unclear: "the path can be read in several ways, and which release it asks for is not clear"
        }
    }
}

/// The time as RFC 3339 has it, in UTC.
package func utc(_ time: WallTime) -> String {
    var bytes: [UInt8] = []
    appendTimestamp(time, to: &bytes)
    return String(decoding: bytes, as: UTF8.self) + "Z"
}
