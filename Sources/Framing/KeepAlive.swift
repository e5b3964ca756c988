package import Message

/// The `timeout` parameter of `Keep-Alive`: how long the peer keeps an idle connection open (a convention since RFC 2068 §19.7.1). Nil if
/// it is missing or not a number.
package func keepAliveTimeout(_ fields: Fields) -> Seconds? {
    guard let value = fields.first(.keepAlive) else { return nil }
    var timeout: Seconds?
    forEachListElement(value) { element in
        guard equalsIgnoringCase(element.prefix(8), "timeout=") else { return }
        timeout = parseDeltaSeconds(element.dropFirst(8))
    }
    return timeout
}
