import Message
import Rules

/// Cookies in the file format of Netscape, which curl and wget read and write.
///
/// A line has seven fields with tabs in between: domain, whether names below it get the cookie, path, whether it is for secure connections,
/// when it ends in Unix time (0: a session cookie), name and value. `#HttpOnly_` may stand in front; other lines with "#" are comments.
package struct CookieFile: Sendable {
    /// Why a line is skipped.
    package enum Fault: Error, Equatable, Sendable {
        case tooLong
        /// The number of its fields.
        case fields(Int)
        case domain, flag, path, expiry
        case rejected(CookieRejection)

        package var text: String {
            switch self {
            case .tooLong: "it has more than \(CookieLimits.lineBytesMax) bytes"
            case .fields(let count): "it has \(count) fields with tabs in between, and not seven"
            case .domain: "its first field is not a host"
            case .flag: "its second and fourth fields must be TRUE or FALSE"
            case .path: "its path does not begin with /"
            case .expiry: "its fifth field is not a number"
            case .rejected(let rejection): rejection.text
            }
        }
    }

    package private(set) var cookies: [Cookie] = []
    /// The lines that were skipped, by their numbers from 1.
    package private(set) var faults: [(line: Int, fault: Fault)] = []

    package init(_ bytes: [UInt8], isPublicSuffix: (String) -> Bool) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            do throws(Fault) {
                if let cookie = try readCookie(line, isPublicSuffix) { cookies.append(cookie) }
            } catch {
                faults.append((index + 1, error))
            }
        }
    }

    /// The text of a file with these cookies.
    package static func text(_ cookies: [Cookie]) -> [UInt8] {
        var text = Array(
            "# Netscape HTTP Cookie File\n# Larder keeps these cookies, and reads the file again when it changes.\n\n"
                .utf8)
        for cookie in cookies { text += line(cookie) }
        return text
    }

    private static func line(_ cookie: Cookie) -> [UInt8] {
        let fields: [[UInt8]] = [
            Array(((cookie.isHTTPOnly ? httpOnly : "") + (cookie.isHostOnly ? "" : ".") + cookie.domain).utf8),
            flag(!cookie.isHostOnly), cookie.path, flag(cookie.isSecure),
            Array("\(cookie.expiry.map { max(1, $0.secondsSinceEpoch) } ?? 0)".utf8), cookie.name, cookie.value,
        ]
        return Array(fields.joined(separator: [UInt8(ascii: "\t")])) + [UInt8(ascii: "\n")]
    }

    private static func flag(_ isSet: Bool) -> [UInt8] { Array((isSet ? "TRUE" : "FALSE").utf8) }
}

private let httpOnly = "#HttpOnly_"

/// Returns nil for a comment and for an empty line.
private func readCookie(
    _ line: ArraySlice<UInt8>, _ isPublicSuffix: (String) -> Bool
) throws(CookieFile.Fault) -> Cookie? {
    var line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    let isHTTPOnly = line.starts(with: httpOnly.utf8)
    if isHTTPOnly { line = line.dropFirst(httpOnly.utf8.count) }
    guard isHTTPOnly || line.first != UInt8(ascii: "#"), line.contains(where: { !isOWS($0) }) else { return nil }
    guard line.count <= CookieLimits.lineBytesMax else { throw .tooLong }
    let fields = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
    // curl leaves out the last tab of a cookie without a value.
    guard fields.count == 7 || fields.count == 6 else { throw .fields(fields.count) }
    guard let includesBelow = flag(fields[1]), let isSecure = flag(fields[3]) else { throw .flag }
    let domain = fields[0].first == UInt8(ascii: ".") ? fields[0].dropFirst() : fields[0]
    guard let host = DestinationHost(domain) else { throw .domain }
    guard fields[2].first == UInt8(ascii: "/") else { throw .path }
    guard let seconds = parseDecimal(fields[4]) else { throw .expiry }
    let cookie = Cookie(
        name: Array(fields[5]), value: fields.count == 7 ? Array(fields[6]) : [], domain: "\(host)",
        isHostOnly: !includesBelow || host.address != nil, path: Array(fields[2]), isSecure: isSecure,
        isHTTPOnly: isHTTPOnly,
        expiry: seconds == 0 ? nil : WallTime(secondsSinceEpoch: Int64(clamping: seconds)))
    if let rejection = cookie.rejection(isPublicSuffix) { throw .rejected(rejection) }
    return cookie
}

private func flag(_ text: ArraySlice<UInt8>) -> Bool? {
    if equalsIgnoringCase(text, "TRUE".utf8) { return true }
    return equalsIgnoringCase(text, "FALSE".utf8) ? false : nil
}

extension Cookie {
    /// Why no origin could have set this cookie. Nil: one could.
    fileprivate func rejection(_ isPublicSuffix: (String) -> Bool) -> CookieRejection? {
        if name.isEmpty, value.isEmpty { return .empty }
        if name.count + value.count > CookieLimits.pairBytesMax { return .tooLong }
        if (name + value + path).contains(where: isControl) { return .character }
        // A ";" would end the cookie in the field, and "=" the name.
        if (name + value).contains(UInt8(ascii: ";")) || name.contains(UInt8(ascii: "=")) { return .character }
        if !isHostOnly, isPublicSuffix(domain) { return .publicSuffix }
        return keepsPromises ? nil : .prefix
    }
}
