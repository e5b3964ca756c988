package import Access
package import Caching
import Message
import Releases
import Rules

// Rules as `larder check` shows them: one line each, with the same words in the same order, however they were written. `parts` has the
// same as names and values, for JSON.

extension AccessRule {
    /// `allow: host *.example.org; port 80, 443 → intercept yes`, `deny: everything ("not on the list")`.
    package var text: String {
        let text =
            switch effect {
            case .allow:
                "allow: \(conditions)" + (intercept.map { " → intercept \(flagText($0)[0])" } ?? "")
                    + (tunnel.map { " → tunnel \($0.rawValue)" } ?? "") + (isForSharedNames ? " → shared yes" : "")
            case .deny(let reason): "deny: \(conditions)" + (reason.map { " (\"\($0)\")" } ?? "")
            case .redirect(let page): "redirect: \(conditions) → to \(page)"
            case .authenticate: "authenticate: \(conditions)"
            }
        return text + (isReport ? " → report only" : "") + (profile.map { " — profile \($0.rawValue)" } ?? "")
    }
}

extension CacheRule {
    /// `host *.example.org; path /pool/* → zone packages; policy cache-first; ttl 1h`.
    package var text: String {
        "\(conditions) → " + (parts.isEmpty ? "as without rules" : lineText(parts))
    }

    /// The settings of the rule, without its conditions.
    package var parts: [(name: String, values: [String])] {
        (recipe.map { [("recipe", [$0])] } ?? []) + (zone.map { [("zone", [$0])] } ?? []) + changes.parts
            + (key?.parts ?? []) + (note.map { [("note", [$0])] } ?? [])
    }
}

extension RecipeUse {
    /// `npm: host registry.example.org → zone packages; failure_statuses 429; min_age 3d`.
    package var text: String {
        "\(name): host \(hosts.map { "\($0)" }.joined(separator: ", "))" + (zone.map { " → zone \($0)" } ?? "")
            + (failureStatuses.map {
                "; failure_statuses \($0.isEmpty ? "none" : $0.statuses.map { "\($0)" }.joined(separator: ", "))"
            } ?? "")
            + (minimumAge.map { "; min_age \($0.words.joined(separator: ", "))" } ?? "")
    }
}

extension WrittenZone {
    /// `packages: memory 64MiB; disk 1TiB in /srv/larder; pinned 512GiB; policy cache-first`.
    package var text: String {
        let memory = [("memory", [renderSize(zone.memory)])]
        return "\(zone.name): \(lineText(memory + diskParts(disk(sync: .zero)) + zone.changes.parts))"
    }
}

extension CacheSettings {
    /// The default zone in the same form.
    package var defaultZoneText: String {
        "\(CacheZone.defaultName): \(lineText([("memory", [renderSize(memory)])] + diskParts(disk)))"
    }
}

private func diskParts(_ disk: ZoneDisk?) -> [(name: String, values: [String])] {
    guard let disk else { return [] }
    return [("disk", ["\(renderSize(disk.size)) in \(disk.path)"]), ("pinned", [renderSize(disk.pinned)])]
}

extension HandlingChanges {
    package var parts: [(name: String, values: [String])] {
        let all: [(String, [String]?)] = [
            ("policy", use.map { $0.words.map(\.rawValue) }), ("storage", storage.map { [$0.rawValue] }),
            ("admission", admission.map { [$0.rawValue] }),
            ("ttl", ttl.map { [renderDuration(.seconds($0.count))] }),
            ("ttl_max", ttlMax.map { [renderDuration(.seconds($0.count))] }),
            ("ttl_default", ttlDefault.map { [renderDuration(.seconds($0.count))] }),
            ("immutable", isImmutable.map(flagText)),
            ("respect_cache_control", respectsCacheControl.map(flagText)),
            ("negative_ttl", negativeTTL.map { [renderDuration(.seconds($0.count))] }),
            ("failure_statuses", failureStatuses.map { $0.isEmpty ? ["none"] : $0.statuses.map { "\($0)" } }),
            ("object_size_max", objectSizeMax.map { [renderSize($0)] }),
            ("store_cookies", storesCookies.map(flagText)),
            ("drop_cookies", droppedCookies.map { $0.map { String(decoding: $0, as: UTF8.self) } }),
            ("digest", digest.map { ["\($0)"] }), ("release", release.map { [$0.rawValue] }),
            ("min_age", minimumAge.map(\.words)),
            ("authorization", authorization.map { [$0.rawValue] }), ("ranges", ranges.map { [$0.rawValue] }),
            ("if_match", ifMatch.map { [$0.rawValue] }),
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
        if let signature { parts.append(("key.signature", ["known"] + signature.map { "\($0)" })) }
        if sharesDigests { parts.append(("key.digest", flagText(true))) }
        return parts
    }
}

private func lineText(_ parts: [(name: String, values: [String])]) -> String {
    parts.map { "\($0.name) \($0.values.joined(separator: ", "))" }.joined(separator: "; ")
}

private func flagText(_ flag: Bool) -> [String] { [flag ? "yes" : "no"] }

extension DigestRule: CustomStringConvertible {
    /// `sha256 from path`, `sha512 from Content-Hash`.
    package var description: String {
        switch source {
        case .path: "\(algorithm.rawValue) from path"
        case .redirect: "\(algorithm.rawValue) from redirect"
        case .index: "\(algorithm.rawValue) from index"
        case .field(let name): "\(algorithm.rawValue) from \(name)"
        }
    }
}
