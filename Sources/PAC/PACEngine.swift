import CLarder
import CPacparser
import Glibc

/// Why a script gave no answer, in its own words.
package struct PACEngineFailure: Error, Equatable, Sendable {
    package let text: [UInt8]

    /// Whether the engine had no more memory. What it does next is not predictable.
    package var isExhaustion: Bool { String(decoding: text, as: UTF8.self).contains("out of memory") }
}

/// The JavaScript engine of libpacparser, with one PAC file.
///
/// The library has one engine for the whole process, is not thread-safe, cannot be interrupted, and its engine is of 2007. So it belongs into a
/// process of its own: see `EvaluatorLimits`.
@safe package final class PACEngine {
    /// Reads the script and runs its top level. Call it once in a process.
    package init(script: [UInt8]) throws(PACEngineFailure) {
        unsafe cpacparser_set_error_printer(clarder_problem_printer())
        guard pacparser_init() == 1 else { throw PACEngineFailure(text: Array("the engine cannot be started".utf8)) }
        if let address = ownAddress() { unsafe pacparser_setmyip(address) }
        try parse(Array(PACEngine.prelude.utf8))
        try parse(script)
        // The library looks for the function with each question only.
        try parse(
            Array("if (typeof FindProxyForURL != 'function') throw Error('it has no function FindProxyForURL')".utf8))
    }

    deinit { pacparser_cleanup() }

    /// What the library lacks. Browsers show what a script says with alert(), and nobody is here to see it. For the library a week does not go on
    /// after Saturday, and `weekdayRange("FRI", "MON")` is never true.
    private static let prelude = """
        function alert() {}
        (function () {
          var days = "SUN MON TUE WED THU FRI SAT", within = weekdayRange;
          weekdayRange = function (first, last, zone) {
            if (last == undefined) return within(first);
            if (last == "GMT") return within(first, "GMT");
            function isWithin(from, to) { return zone == "GMT" ? within(from, to, "GMT") : within(from, to); }
            if (days.indexOf(first) <= days.indexOf(last)) return isWithin(first, last);
            return isWithin(first, "SAT") || isWithin("SUN", last);
          };
        })();
        """

    /// What `FindProxyForURL(url, host)` returns, as text.
    package func findProxy(url: [UInt8], host: [UInt8]) throws(PACEngineFailure) -> [UInt8] {
        // The library puts both between quotes.
        guard !(url + host).contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: "\\") }) else {
            throw PACEngineFailure(text: Array("the URL cannot be given to a script".utf8))
        }
        let (url, host) = (url + [0], host + [0])
        let answer = unsafe url.withUnsafeBytes { url in
            unsafe host.withUnsafeBytes { host in
                unsafe pacparser_find_proxy(
                    url.baseAddress!.assumingMemoryBound(to: CChar.self),
                    host.baseAddress!.assumingMemoryBound(to: CChar.self))
            }
        }
        guard let answer = unsafe answer else { throw takeProblem() }
        // The engine owns the text, and frees it when it collects garbage.
        return unsafe Array(UnsafeRawBufferPointer(start: answer, count: strlen(answer)))
    }

    private func parse(_ script: [UInt8]) throws(PACEngineFailure) {
        guard !script.contains(0) else { throw PACEngineFailure(text: Array("it has a NUL byte".utf8)) }
        let script = script + [0]
        let isParsed = unsafe script.withUnsafeBytes {
            unsafe pacparser_parse_pac_string($0.baseAddress!.assumingMemoryBound(to: CChar.self))
        }
        guard isParsed == 1 else { throw takeProblem() }
    }

    /// `JSERROR: PAC script:3:\n    ReferenceError: x is not defined` as one line, without the library's own remarks behind it.
    private func takeProblem() -> PACEngineFailure {
        var buffer = [UInt8](repeating: 0, count: 2048)
        let count = unsafe buffer.withUnsafeMutableBytes {
            unsafe clarder_take_problem($0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        var text = String(decoding: buffer[..<count], as: UTF8.self)
        if let remark = text.firstRange(of: "pacparser.c:"), remark.lowerBound > text.startIndex {
            text = String(text[..<remark.lowerBound])
        }
        if let mark = text.firstRange(of: "JSERROR: PAC script:") { text = "line " + text[mark.upperBound...] }
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        return PACEngineFailure(text: Array(words.utf8))
    }
}

/// The address from which this machine reaches others, for `myIpAddress()`. The library would look for the host's own name, which often leads to
/// 127.0.1.1. Chromium does the same: a UDP socket is connected, and nothing is sent. Nil if there is no way out.
private func ownAddress() -> String? {
    let fd = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
    guard fd >= 0 else { return nil }
    defer { _ = close(fd) }
    // 8.8.8.8, as in Chromium.
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(53).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x0808_0808)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let found = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe connect(fd, $0, length) == 0 && getsockname(fd, $0, &length) == 0
        }
    }
    guard found else { return nil }
    let bits = UInt32(bigEndian: address.sin_addr.s_addr)
    return [24, 16, 8, 0].map { String(bits >> $0 & 0xFF) }.joined(separator: ".")
}
