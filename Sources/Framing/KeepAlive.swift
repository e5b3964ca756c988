package import Message

/// `Keep-Alive: timeout=N`: for how long the other side keeps an idle connection (a convention since RFC 2068 §19.7.1); nil
/// where it does not say, or not in a number.
package func keepAliveTimeout(_ fields: Fields) -> Seconds? {
    guard let value = fields.first(.keepAlive) else { return nil }
    var timeout: Seconds?
    forEachListElement(value) { element in
        guard equalsIgnoringCase(element.prefix(8), "timeout=") else { return }
        timeout = parseDeltaSeconds(element.dropFirst(8))
    }
    return timeout
}
