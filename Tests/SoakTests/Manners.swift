/// What a response that comes through Larder has to look like, whatever its body is: RFC 9110 and RFC 9111 on fields,
/// RFC 9211 on `Cache-Status`.
/// - Returns: what is wrong.
func mannersMissing(in answer: Answer, to question: Question) -> [String] {
    guard let head = answer.head else { return ["no head"] }
    var missing: [String] = []
    let once = [
        "date", "age", "content-length", "content-range", "content-type", "etag", "last-modified", "expires",
        "location",
        "cache-status", "retry-after",
    ]
    for name in once where head.all(name).count > 1 { missing.append("\(name) \(head.all(name).count) times") }
    let hopByHop = [
        "keep-alive", "proxy-connection", "te", "upgrade", "proxy-authenticate", "proxy-authorization", "x-hop",
        "x-origin-hop", "http2-settings",
    ]
    for name in hopByHop where head[name] != nil { missing.append("\(name) is for one connection only") }
    for option in head.members("connection") where option != "close" && option != "keep-alive" {
        missing.append("Connection names \(option)")
    }
    if answer.closes != head.members("connection").contains("close"), question.minorVersion == 1 {
        missing.append("a connection that ends without Connection: close")
    }
    // A Date that is none may be passed on as it came (RFC 9110 §6.6.1); one that is missing may not.
    if head["date"].map({ isFixdate($0) || Answering.oddDates.contains($0) }) != true {
        missing.append("Date: \(head["date"] ?? "none")")
    }
    // A number that no program counts with is one all the same, and passed on (RFC 9111 §1.2.2).
    if let age = head["age"], age.isEmpty || !age.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
        missing.append("Age: \(age)")
    }
    if answer.isHit, head["age"] == nil { missing.append("a hit without Age (RFC 9111 §5.1)") }
    let isForwarded = answer.isHit || answer["cache-status"]?.contains("fwd=") == true
    if isForwarded, !head.members("via").contains(where: { $0.hasPrefix("1.") && $0.contains("larder") }) {
        missing.append("Via: \(head["via"] ?? "none")")
    }
    if let status = head["cache-status"] {
        missing += cacheStatusFaults(status)
    } else if question.method != "OPTIONS" {
        missing.append("no Cache-Status")
    }
    if answer.status != 206, answer.status != 416, head["content-range"] != nil {
        missing.append("Content-Range with \(answer.status)")
    }
    if answer.isOwn, !(head["cache-control"] ?? "").contains("no-store") {
        missing.append("an error that may be stored")
    }
    return missing
}

func isMultipart(_ head: Head) -> Bool { head["content-type"]?.hasPrefix("multipart/byteranges") == true }

/// The parameters that RFC 9211 §2 defines, each once and of its type.
private func cacheStatusFaults(_ value: String) -> [String] {
    let parts = value.split(separator: ";", omittingEmptySubsequences: false).map { trimmed($0) }
    guard parts.first == "larder" else { return ["Cache-Status: \(value)"] }
    var faults: [String] = []
    var names: Set<String> = []
    for part in parts.dropFirst() {
        let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
        let name = pair.first ?? ""
        let text = pair.count == 2 ? pair[1] : nil
        if !names.insert(name).inserted { faults.append("Cache-Status has \(name) twice: \(value)") }
        let isRight =
            switch name {
            case "hit", "stored", "collapsed": text == nil
            case "fwd":
                ["bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial"].contains(text)
            case "fwd-status": text.flatMap { decimal($0) }.map { (100...599).contains($0) } ?? false
            case "ttl": text.map { decimal($0.hasPrefix("-") ? $0.dropFirst() : $0[...]) != nil } ?? false
            case "detail", "zone", "key": text != nil
            default: false
            }
        if !isRight { faults.append("Cache-Status: \(value)") }
    }
    if names.contains("hit"), names.contains("fwd") { faults.append("Cache-Status hit and fwd: \(value)") }
    return faults
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
private func isFixdate(_ text: String) -> Bool {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 6, text.utf8.count == 29,
        ["Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,"].contains(parts[0])
    else { return false }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let time = parts[4].split(separator: ":", omittingEmptySubsequences: false)
    return decimal(parts[1]) != nil && months.contains(String(parts[2])) && decimal(parts[3]) != nil
        && time.count == 3 && time.allSatisfy { $0.count == 2 && decimal($0) != nil } && parts[5] == "GMT"
}
