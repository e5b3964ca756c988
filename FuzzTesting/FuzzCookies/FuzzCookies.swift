import Cookies
import FuzzSupport
import Message
import Rules

private let now = WallTime(secondsSinceEpoch: 1_000_000_000)
private let hosts = ["a.example", "www.a.example", "127.0.0.1", "b.example"]
private let paths = ["/", "/x/y", "/x", "/xy"]

/// The first byte says what the rest is: an even one begins lines of `Set-Cookie`, an odd one a cookie file. What a jar takes goes to hosts that
/// match and nowhere else, over secure connections alone where that was asked for, and survives the file.
@_cdecl("FuzzCookies_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        guard let choice = bytes.first else { return 0 }
        var jar = CookieJar()
        if choice & 1 == 0 {
            for (index, line) in bytes.dropFirst().split(separator: UInt8(ascii: "\n")).enumerated() {
                learn(line, index &+ Int(choice) / 2, &jar)
            }
        } else {
            let file = CookieFile(Array(bytes.dropFirst()), isPublicSuffix: isPublicSuffix)
            jar.replace(with: file.cookies, savedAt: nil, now: now)
        }
        let cookies = jar.cookies(now: now)
        precondition(cookies.count <= jar.count && jar.count <= CookieLimits.countMax, "a jar is bounded")

        let text = CookieFile.text(cookies)
        let read = CookieFile(text, isPublicSuffix: isPublicSuffix)
        precondition(read.faults.isEmpty, "what is written can be read")
        var copy = CookieJar()
        copy.replace(with: read.cookies, savedAt: nil, now: now)
        precondition(CookieFile.text(copy.cookies(now: now)) == text, "nothing changes on the way")

        for (host, path) in zip(hosts, paths) {
            for isSecure in [false, true] { check(&jar, origin(host, path, isSecure: isSecure)) }
        }
        return 0
    }
}

private func learn(_ line: ArraySlice<UInt8>, _ number: Int, _ jar: inout CookieJar) {
    let origin = origin(hosts[number % 4], paths[number / 4 % 4], isSecure: number & 16 == 0)
    do throws(CookieRejection) {
        let cookie = try jar.set(SetCookie(line), from: origin, now: now, isPublicSuffix: isPublicSuffix)
        precondition(origin.matches(domain: cookie.domain), "an origin sets cookies for itself and above")
        precondition(!cookie.isSecure || origin.isSecure, "a secure cookie comes over a secure connection")
        precondition(cookie.isHostOnly || !isPublicSuffix(cookie.domain), "nobody sets cookies for everybody")
    } catch {}
}

private func check(_ jar: inout CookieJar, _ origin: CookieOrigin) {
    for cookie in jar.cookies(for: origin, now: now) {
        precondition(cookie.isHostOnly ? cookie.domain == origin.host : origin.matches(domain: cookie.domain))
        precondition(!cookie.isSecure || origin.isSecure, "a secure cookie goes over a secure connection")
        precondition(pathMatches(origin.path, cookie.path) && !cookie.isExpired(at: now))
    }
    let field = jar.field(for: origin, now: now)
    precondition(field.map { $0.value.count <= CookieLimits.fieldBytesMax } ?? true, "the field is bounded")
    precondition(field.map { !$0.value.contains { $0 < 0x20 || $0 == 0x7F } } ?? true, "it is one line")
}

private func origin(_ host: String, _ path: String, isSecure: Bool) -> CookieOrigin {
    guard let host = DestinationHost(host.utf8) else { preconditionFailure("it is a host") }
    return CookieOrigin(host, target: Array(path.utf8)[...], isSecure: isSecure)
}

/// As a list would say, in short.
private func isPublicSuffix(_ domain: String) -> Bool { domain == "example" || !domain.contains(".") }
