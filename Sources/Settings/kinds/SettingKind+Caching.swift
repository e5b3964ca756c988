import Caching
import Message
import Rules

extension SettingKind where Value == Seconds {
    /// A duration in whole seconds: HTTP has no smaller unit.
    static func seconds(_ bounds: ClosedRange<Duration>) -> SettingKind {
        .scalar(
            "a duration of whole seconds from \(renderDuration(bounds.lowerBound)) to \(renderDuration(bounds.upperBound))",
            parse: { text in
                guard let duration = parseDuration(text), bounds.contains(duration),
                    duration.components.attoseconds == 0
                else { return nil }
                return Seconds(duration.components.seconds)
            }, render: { renderDuration(.seconds($0.count)) },
            hint: { Int($0) == nil ? nil : "a duration needs a unit: \($0)s, \($0)m, \($0)h" })
    }
}

extension SettingKind where Value == CacheUse {
    /// One policy, or several that do not contradict each other.
    static var policies: SettingKind {
        let words = SettingKind<CachePolicyWord>.choice.list()
        return SettingKind(
            allowed: words.allowed,
            read: { node, problems in
                guard let words = words.read(node, &problems) else { return nil }
                do throws(CachePolicyContradiction) {
                    return try CacheUse(words)
                } catch {
                    let (one, other) = (error.one.rawValue, error.other.rawValue)
                    problems.append(SettingProblem(node, message: "\(one) and \(other) contradict each other"))
                    return nil
                }
            }, render: { words.render($0.words) })
    }
}

extension SettingKind where Value == RuleConditions {
    /// The value of `match` in a cache rule.
    static var cacheConditions: SettingKind { .conditions(of: .cache) }

    static func conditions(of side: RuleSide) -> SettingKind {
        SettingKind(
            allowed: "conditions such as { host: … }",
            read: { node, problems in
                guard
                    var reader = MappingReader(
                        node, expected: "conditions such as { host: … }", problems: &problems)
                else { return nil }
                let conditions = readConditions(&reader, of: side)
                return reader.finish("condition", into: &problems) ? conditions : nil
            }, render: { "\($0)" })
    }
}

extension SettingKind where Value == KeyRules {
    static var keyRules: SettingKind {
        SettingKind(
            allowed: "drop: or keep: …, sort: yes, host: …, signature: …, digest: yes",
            read: { node, problems in
                guard var reader = MappingReader(node, expected: "keys such as drop: …", problems: &problems) else {
                    return nil
                }
                let dropped = reader.value("drop", SettingKind<ParameterPattern>.parameter.list())
                let kept = reader.value("keep", SettingKind<ParameterPattern>.parameter.list())
                let sorts = reader.value("sort", .flag) ?? false
                let host = reader.value("host", .keyHost)
                let signature = reader.value("signature", .signature)
                let sharesDigests = reader.value("digest", .flag) ?? false
                if dropped != nil { reader.refuse("keep", "drop and keep cannot be combined") }
                guard reader.finish("key", into: &problems) else { return nil }
                let query: QuerySelection = dropped.map { .dropping($0) } ?? kept.map { .keeping($0) } ?? .all
                return KeyRules(
                    query: query, sortsQuery: sorts, host: host, signature: signature, sharesDigests: sharesDigests)
            }, render: { "\($0)" })
    }
}

extension SettingKind where Value == [ParameterPattern] {
    /// `known`, or names of parameters beyond those that are known.
    static var signature: SettingKind {
        let names = SettingKind<ParameterPattern>.parameter.list()
        return SettingKind(
            allowed: "known, or \(names.allowed)",
            read: { node, problems in
                if case .scalar("known", isQuoted: false) = node.value { return [] }
                return names.read(node, &problems)
            }, render: { $0.isEmpty ? "known" : names.render($0) })
    }
}

extension SettingKind where Value == ParameterPattern {
    static var parameter: SettingKind {
        .scalar(
            "the name of a query parameter, or its start followed by *", parse: { ParameterPattern($0) },
            render: { $0.description.hasSuffix("*") ? "\"\($0)\"" : "\($0)" })
    }
}

extension SettingKind where Value == String {
    static var zoneName: SettingKind {
        .scalar(
            "a name of 1 to 32 lower-case letters, digits and -",
            parse: { text in
                let isFine = text.utf8.allSatisfy {
                    (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D
                }
                return isFine && (1...32).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }

    /// The name of a cookie is a token (RFC 6265 §4.1.1).
    static var cookieName: SettingKind {
        .scalar(
            "the name of a cookie",
            parse: { !$0.isEmpty && $0.utf8.allSatisfy { isTchar($0) && $0 != UInt8(ascii: "*") } ? $0 : nil },
            render: { $0 },
            hint: { $0.contains("*") ? "each cookie is named: those of others are never dropped" : nil })
    }

    /// A host as it is written in a URI.
    static var keyHost: SettingKind {
        .scalar(
            "a host name or an address, without a port",
            parse: { text in
                DestinationHost(text.utf8).map { host in
                    if let address = host.address, !address.isV4 { return "[\(address)]" }
                    return "\(host)"
                }
            }, render: { $0 })
    }
}

/// `disk` of a zone, as written.
struct WrittenDisk: Sendable, Equatable {
    var path: String
    /// In bytes.
    var size: UInt64
    /// In bytes. Nil if it is left out.
    var pinned: UInt64?
}

extension SettingKind where Value == WrittenDisk {
    static var zoneDisk: SettingKind {
        SettingKind(
            allowed: "path: … and size: …",
            read: { node, problems in
                guard var reader = MappingReader(node, expected: "the keys path, size, pinned", problems: &problems)
                else {
                    return nil
                }
                let path = reader.requiredValue("path", .path("a directory"))
                let size = reader.requiredValue("size", .diskSize)
                let pinned = reader.value("pinned", .size(0...1 << 50))
                guard reader.finish("key", into: &problems), let path, let size else { return nil }
                return WrittenDisk(path: path, size: size, pinned: pinned)
            },
            render: { disk in
                let pinned = disk.pinned.map { ", pinned: \(renderSize($0))" } ?? ""
                return "{ path: \(disk.path), size: \(renderSize(disk.size))\(pinned) }"
            })
    }
}

extension SettingKind where Value == DigestRule {
    /// `{ from: path, algorithm: sha256 }` or `{ from: FIELD, … }`.
    static var digest: SettingKind {
        SettingKind(
            allowed: "from: path, index, redirect or the name of a field, algorithm: sha256, sha512 or blake2b-256",
            read: { node, problems in
                guard var reader = MappingReader(node, expected: "the keys from and algorithm", problems: &problems)
                else { return nil }
                let from = reader.requiredValue("from", .digestSource)
                let algorithm: DigestRule.Algorithm? = reader.requiredValue("algorithm", .choice)
                guard reader.finish("key", into: &problems), let from, let algorithm else { return nil }
                return DigestRule(source: from, algorithm: algorithm)
            }, render: { "\($0)" })
    }
}

extension SettingKind where Value == DigestRule.Source {
    static var digestSource: SettingKind {
        .scalar(
            "path, index, redirect, or the name of a field of the response",
            parse: { text in
                guard !text.isEmpty, text.utf8.allSatisfy(isTchar) else { return nil }
                switch text {
                case "path": return .path
                case "index": return .index
                case "redirect": return .redirect
                default: return .field(text)
                }
            }, render: { "\($0)" })
    }
}
