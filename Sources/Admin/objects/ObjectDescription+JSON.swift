extension ObjectDescription {
    /// One line of the answer to `GET /objects`, without its line feed.
    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("url", url)
            writer.member("status", status)
            writer.member("bytes", bytes)
            writer.key("type")
            if let contentType { writer.string(contentType) } else { writer.null() }
            writer.member("age", ageSeconds)
            writer.member("ttl", ttlSeconds)
            writer.member("state", state.rawValue)
            writer.member("variants", variants)
            writer.key("vary")
            writer.array { for name in vary { $0.string(name) } }
            writer.member("hits", hits)
            writer.member("zone", zone)
            writer.member("storage", storage.rawValue)
            if !addresses.isEmpty {
                writer.key("addresses")
                writer.array { for address in addresses { $0.string(address) } }
            }
        }
        return writer.bytes
    }
}

/// The body of `GET /objects`: JSON lines (application/x-ndjson), one for each stored response, made page by page.
func objectLines(_ nextPage: @escaping @Sendable () -> [ObjectDescription]?) -> BodyPieces {
    BodyPieces { nextPage()?.flatMap { $0.json + [0x0A] } }
}

/// Reads the selection in a query. Its conditions have the same names as those of a purge.
func selection(ofQuery query: String) throws(SelectionError) -> Selection {
    var selection = Selection()
    for (name, value) in try formMembers(query.utf8) {
        guard let key = SelectionKey(rawValue: name) else {
            throw SelectionError(message: "\"\(name)\" is not known here: \(conditionNames) are")
        }
        guard let value else { throw SelectionError(message: "\"\(name)\" needs a value") }
        try selection.set(key, value)
    }
    return selection
}
