import Message

extension RuleConditions: CustomStringConvertible {
    /// The conditions in the words and in the order of the manual.
    package var parts: [(name: String, values: [String])] {
        let all: [(name: String, values: [String])] = [
            ("host", hosts.map { "\($0)" } + hostLists.map { text($0, $0.content.count) }),
            ("address", addresses.map { "\($0)" } + addressLists.map { text($0, $0.content.count) }),
            ("port", ports.map(Self.text)), ("method", methods),
            ("scheme", schemes.map { $0 == .http ? "http" : "https" }),
            ("sni", serverNames.map { "\($0)" }), ("path", paths.map { "\($0)" }), ("query", details.queries),
            ("type", types.map { "\($0)" }),
            ("content_type", details.contentTypes.map { "\($0)" }),
            ("request_size", details.bodyLength.map { [Self.text($0)] } ?? []), ("upgrade", details.upgrades),
            ("credential", details.credentials.map(\.rawValue) + details.ownCredentials.map { "own \($0)" }),
            ("user_agent", details.userAgents.map { "\($0)" }), ("time", details.times.map { "\($0)" }),
            ("zone", details.zone.map { [$0.name] } ?? []),
            ("user", users + userLists.map { text($0, $0.content.count) }), ("group", groups),
            ("client", clients.map { "\($0)" } + clientLists.map { text($0, $0.content.count) }),
            ("listener", listeners),
        ]
        return all.filter { !$0.values.isEmpty }
    }

    /// `host *.example.org; port 80, 443`; `everything` without any condition.
    package var description: String {
        let named = parts.map { "\($0.name) \($0.values.joined(separator: ", "))" }
        return named.isEmpty ? "everything" : named.joined(separator: "; ")
    }

    package var isEverything: Bool { parts.isEmpty }

    /// `blocked.txt (4711 entries)`.
    private func text<Content>(_ list: ListFile<Content>, _ count: Int) -> String {
        "\(list.file) (\(count) \(count == 1 ? "entry" : "entries"))"
    }

    /// `at most 1048576`, or `at least 1`.
    private static func text(_ length: ClosedRange<UInt64>) -> String {
        let parts =
            (length.lowerBound > 0 ? ["at least \(length.lowerBound)"] : [])
            + (length.upperBound < .max ? ["at most \(length.upperBound)"] : [])
        return (parts.isEmpty ? "any" : parts.joined(separator: " and ")) + " bytes"
    }

    /// `443`, or `8000-8099`.
    package static func text(_ ports: ClosedRange<UInt16>) -> String {
        ports.count == 1 ? "\(ports.lowerBound)" : "\(ports.lowerBound)-\(ports.upperBound)"
    }
}
