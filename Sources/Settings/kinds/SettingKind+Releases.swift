import Message
import Releases
import Rules
import Texts

extension SettingKind where Value == MinimumAge {
    /// `min_age`: a duration, or a mapping with the exceptions.
    static var minimumAge: SettingKind {
        let age = SettingKind<Seconds>.seconds(.zero ... .days(3650))
        return SettingKind(
            allowed: "\(age.allowed), or the keys age, cut_off, except and others",
            read: { node, problems in
                if case .scalar = node.value, !node.isNull { return age.read(node, &problems).map(MinimumAge.init) }
                guard
                    var reader = MappingReader(node, expected: "a duration or keys such as age: …", problems: &problems)
                else { return nil }
                return readMinimumAge(&reader, age, &problems)
            }, render: { "\($0)" })
    }
}

private func readMinimumAge(
    _ reader: inout MappingReader, _ ageKind: SettingKind<Seconds>, _ problems: inout [SettingProblem]
) -> MinimumAge? {
    let age = reader.value("age", ageKind)
    let cutOff = reader.value("cut_off", .moment)
    let except = reader.value("except", SettingKind<PackagePattern>.packagePattern.list())
    let packages = reader.value("packages", .packageAges)
    let breakGlass = reader.value("break_glass", .breakGlass)
    let undated: MinimumAge.Undated? = reader.value("undated", .choice)
    let isReportOnly = reader.value("report_only", .flag)
    // A mapping without either would look like a rule and refuse nothing.
    if cutOff == nil, packages == nil { _ = reader.requiredValue("age", ageKind) }
    guard reader.finish("key", into: &problems) else { return nil }
    var rule = MinimumAge(age: age ?? .zero)
    rule.cutOff = cutOff
    rule.except = except ?? []
    rule.packages = packages ?? []
    rule.breakGlass = breakGlass ?? []
    rule.undated = undated ?? .pass
    rule.isReportOnly = isReportOnly ?? false
    return rule
}

extension SettingKind where Value == WallTime {
    /// An instant, or a date for its first second in UTC.
    static var moment: SettingKind {
        .scalar(
            "a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z", parse: { parseTimestamp($0.utf8) },
            render: { utc($0) })
    }
}

extension SettingKind where Value == PackagePattern {
    static var packagePattern: SettingKind {
        .scalar(
            "the name of a package, or its beginning followed by *", parse: { PackagePattern($0) },
            render: { yamlQuoted("\($0)") })
    }
}

extension SettingKind where Value == [MinimumAge.PackageAge] {
    static var packageAges: SettingKind {
        .elements("packages", allowed: "a list of package: NAME with age: …") { node, _, problems in
            guard var reader = MappingReader(node, expected: "the keys package and age", problems: &problems) else {
                return nil
            }
            let package = reader.requiredValue("package", .packagePattern)
            let age = reader.requiredValue("age", .seconds(.zero ... .days(3650)))
            guard reader.finish("key", into: &problems), let package, let age else { return nil }
            return MinimumAge.PackageAge(package: package, age: age)
        }
    }
}

extension SettingKind where Value == [MinimumAge.BreakGlass] {
    static var breakGlass: SettingKind {
        .elements("entries", allowed: "a list of package: NAME with until: … and why: …") { node, _, problems in
            guard var reader = MappingReader(node, expected: "the keys package, until and why", problems: &problems)
            else { return nil }
            let package = reader.requiredValue("package", .packagePattern)
            let until = reader.requiredValue("until", .moment)
            let why = reader.requiredValue("why", .text(200))
            guard reader.finish("key", into: &problems), let package, let until, let why else { return nil }
            return MinimumAge.BreakGlass(package: package, until: until, why: why)
        }
    }
}

extension MinimumAge {
    /// As `larder check` shows it: `3d, except @acme/*, cut off 2026-11-01T00:00:00Z`.
    var words: [String] {
        var words = [renderDuration(.seconds(age.count))]
        words += packages.map { "\(renderDuration(.seconds($0.age.count))) for \($0.package)" }
        words += except.map { "except \($0)" }
        if let cutOff { words.append("cut off \(utc(cutOff))") }
        words += breakGlass.map { "\($0.package) passes until \(utc($0.until)) (\"\($0.why)\")" }
        if undated == .refuse { words.append("undated refused") }
        if isReportOnly { words.append("report only") }
        return words
    }
}
