package import Access
package import Caching
import Message
import Rules

// Rules as `larder check` shows them: one line each, the same words in the same order however they were written. The parts are
// the same as names and values, for JSON.

extension AccessRule {
    /// `allow: host *.example.org; port 80, 443`, `deny: everything ("not on the list")`.
    package var text: String {
        switch effect {
        case .allow: "allow: \(conditions)"
        case .deny(let reason): "deny: \(conditions)" + (reason.map { " (\"\($0)\")" } ?? "")
        }
    }
}

extension CacheRule {
    /// `host *.example.org; path /pool/* → zone packages; policy cache-first; ttl 1h`.
    package var text: String {
        "\(conditions) → " + (parts.isEmpty ? "as without rules" : lineText(parts))
    }

    /// What it says beside its conditions.
    package var parts: [(name: String, values: [String])] {
        (zone.map { [("zone", [$0])] } ?? []) + changes.parts + (key?.parts ?? [])
    }
}

extension CacheZone {
    /// `packages: memory 64MiB; policy cache-first`.
    package var text: String { "\(name): \(lineText([("memory", [renderSize(memory)])] + changes.parts))" }
}

extension TreatmentChanges {
    package var parts: [(name: String, values: [String])] {
        let all: [(String, [String]?)] = [
            ("policy", use.map { $0.words.map(\.rawValue) }), ("storage", storage.map { [$0.rawValue] }),
            ("ttl", ttl.map { [renderDuration(.seconds($0.count))] }),
            ("respect_cache_control", respectsCacheControl.map(flagText)),
            ("negative_ttl", negativeTTL.map { [renderDuration(.seconds($0.count))] }),
            ("object_size_max", objectSizeMax.map { [renderSize($0)] }),
            ("store_cookies", storesCookies.map(flagText)), ("ranges", ranges.map { [$0.rawValue] }),
            ("compress", compression.map { [$0.rawValue] }),
        ]
        return all.compactMap { name, values in values.map { (name, $0) } }
    }
}

extension KeyRules {
    package var parts: [(name: String, values: [String])] {
        var parts: [(name: String, values: [String])] = []
        switch query {
        case .all: break
        case .dropping(let patterns): parts.append(("key.drop", patterns.map { "\($0)" }))
        case .keeping(let patterns): parts.append(("key.keep", patterns.map { "\($0)" }))
        }
        if sortsQuery { parts.append(("key.sort", flagText(true))) }
        if let host { parts.append(("key.host", [host])) }
        return parts
    }
}

private func lineText(_ parts: [(name: String, values: [String])]) -> String {
    parts.map { "\($0.name) \($0.values.joined(separator: ", "))" }.joined(separator: "; ")
}

private func flagText(_ flag: Bool) -> [String] { [flag ? "yes" : "no"] }
