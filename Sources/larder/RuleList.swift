import Access
import Admin
import Caching
import Rules
import Settings

/// The rules in effect, one line each, with the numbers that logs and refusals use. Empty if there are no rules.
func ruleList(_ configuration: Configuration) -> String {
    let (access, cache) = (configuration.access, configuration.cache)
    var lines: [String] = []
    if !access.rules.isEmpty || access.defaultEffect == .deny {
        lines += ["", "Access rules"] + access.rules.map { numbered($0.number, $0.text) }
        lines.append(numbered(nil, "otherwise: \(access.defaultEffect.rawValue)"))
    }
    if !cache.zones.isEmpty {
        lines += ["", "Zones", numbered(nil, cache.defaultZoneText)]
        lines += cache.writtenZones.map { numbered(nil, $0.text) }
    }
    if !cache.rules.isEmpty {
        lines += ["", "Cache rules"] + cache.rules.map { numbered($0.number, $0.text) }
    }
    if !configuration.recipes.isEmpty {
        lines += ["", "Recipes"] + configuration.recipes.map { numbered(nil, $0.text) }
    }
    return lines.joined(separator: "\n")
}

/// The same as JSON: `access_rules`, `access_default`, `zones`, `cache_rules`.
func writeRules(_ configuration: Configuration, to json: inout JSONWriter) {
    json.key("access_rules")
    json.array { json in
        for rule in configuration.access.rules {
            json.object {
                writeHead(rule.number, rule.line, rule.text, to: &$0)
                switch rule.effect {
                case .allow: $0.member("effect", "allow")
                case .deny(let reason):
                    $0.member("effect", "deny")
                    if let reason { $0.member("reason", reason) }
                case .redirect(let page):
                    $0.member("effect", "redirect")
                    $0.member("to", page)
                case .authenticate: $0.member("effect", "authenticate")
                }
                if rule.isReport { $0.member("report", true) }
                if let profile = rule.profile { $0.member("profile", profile.rawValue) }
                $0.key("match")
                write(rule.conditions.parts, to: &$0)
            }
        }
    }
    json.member("access_default", configuration.access.defaultEffect.rawValue)
    json.key("zones")
    json.array { json in
        for zone in configuration.cache.zones {
            json.object {
                $0.member("name", zone.name)
                $0.member("memory", zone.memory)
                if let disk = configuration.cache.disk(ofZone: zone.name) { write(disk, to: &$0) }
                $0.key("handling")
                write(zone.changes.parts, to: &$0)
            }
        }
    }
    json.key("cache_rules")
    json.array { json in
        for rule in configuration.cache.rules {
            json.object {
                writeHead(rule.number, rule.line, rule.text, to: &$0)
                $0.key("match")
                write(rule.conditions.parts, to: &$0)
                $0.key("handling")
                write(rule.parts, to: &$0)
            }
        }
    }
}

private func writeHead(_ number: Int, _ line: Int, _ text: String, to json: inout JSONWriter) {
    json.member("number", number)
    json.member("line", line)
    json.member("text", text)
}

private func write(_ disk: ZoneDisk, to json: inout JSONWriter) {
    json.key("disk")
    json.object {
        $0.member("path", disk.path)
        $0.member("size", disk.size)
        $0.member("pinned", disk.pinned)
    }
}

/// Every value is a list, because it can be one in the file.
private func write(_ parts: [(name: String, values: [String])], to json: inout JSONWriter) {
    json.object { json in
        for part in parts {
            json.key(part.name)
            json.array { for value in part.values { $0.string(value) } }
        }
    }
}

private func numbered(_ number: Int?, _ text: String) -> String {
    "  \(padded(number.map { "\($0)." } ?? "", 4))\(text)"
}
