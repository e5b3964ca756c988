import EventLoop
import Glibc
import TLS

/// Resources of which it is known beforehand what they are: an address or an index promises the SHA-256 of the content. No client may ever get a
/// whole body with other bytes, however it came.
extension Resource {
    enum Promise: Sendable {
        /// The digest is in the path.
        case path
        /// In the path as well, and all addresses with it share one stored body. The other origin has the same content.
        case shared
        /// In an index, which the proxy reads before the first client comes.
        case index
    }
    var promise: Promise? {
        switch folder {
        case .proven: .path
        case .shared: .shared
        case .files: .index
        case .a, .b, .fly, .once, .whole, .pass, .first: nil
        }
    }
    var isPromised: Bool { promise != nil }

    /// The resource of the other origin with the same content: what one of them does, clients of both may meet.
    var twin: Resource? { promise == .shared ? Resource(seed: seed, number: number ^ 1) : nil }

    /// What the content follows from.
    var contentNumber: UInt64 { UInt64(promise == .shared ? number & ~1 : number) }

    /// In hexadecimal digits.
    var promisedDigest: String { PromisedDigests.digits(of: self) }

    /// It is fresh for as long as the soak looks, so that it is a hit once it is stored. A rule says so of what is shared, unless the origin wants to
    /// be asked each time.
    var isLasting: Bool {
        switch cacheControl {
        case "public, max-age=60", "max-age=60", "s-maxage=30": true
        case "no-cache": false
        default: promise == .shared
        }
    }

    /// The cache rules for it, in YAML.
    static let rulesOfPromised = """
            - { match: { path: "/proven/*/{hex:64}" }, digest: { from: path, algorithm: sha256 } }
            - match: { host: [ 127.0.0.1, \(Question.originName) ], path: "/shared/*/{hex:64}" }
              key: { digest: yes, host: \(Question.originName) }
              digest: { from: path, algorithm: sha256 }
              immutable: yes
            - { match: { path: "/simple/{project}/" }, release: python-index, ttl: 1h }
            - { match: { path: "/files/*" }, digest: { from: index, algorithm: sha256 } }
        """
}

/// Digests, which take long to make, are kept.
private enum PromisedDigests {
    private static let known = Locked<[Resource: String]>([:])

    static func digits(of resource: Resource) -> String {
        if let digits = known.withLock({ $0[resource] }) { return digits }
        let digits = Digest.sha256(Form(resource: resource).bytes).map {
            ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }.joined()
        known.withLock { $0[resource] = digits }
        return digits
    }
}

/// What an origin has in place of what was promised. It has it for several requests, so that whoever asks for the rest gets more of the same.
struct Forgery: Sendable {
    let fault: Fault
    private let dice: Dice

    private static let asksMin = 6

    /// Nil if the origin has the right bytes when this request comes.
    init?(_ resource: Resource, ask: Int) {
        guard resource.isPromised, resource.health != .constant else { return nil }
        var dice = Dice(resource.seed, UInt64(resource.number), 0xF0E6, UInt64(ask / Self.asksMin))
        guard dice.oneIn(3) else { return nil }
        fault = dice.oneIn(3) ? .wrongBody : .wrongByte
        self.dice = dice
    }

    /// As many bytes, of which at least one is wrong. Of none there is no other form.
    func forged(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard !bytes.isEmpty else { return bytes }
        var dice = dice
        var forged = Array(bytes)
        let block = min(4096, forged.count)
        let place =
            switch dice.below(4) {
            case 0: dice.below(block)
            case 1: forged.count - 1 - dice.below(block)
            case 2: forged.count - 1
            default: dice.below(forged.count)
            }
        if fault == .wrongBody {
            let start = dice.below(Noise.period)
            forged = Array(Noise.bytes[start..<start + forged.count])
        }
        forged[place] = bytes[bytes.startIndex + place] ^ UInt8(1 + dice.below(255))
        return forged[...]
    }
}

extension Origin {
    static let indexPath = "/simple/soak/"

    /// The index of the files of an origin, which is always right: one origin has it in HTML and the other one in JSON, as those of Python packages are.
    /// Nil if the request is for something else.
    static func indexAnswer(to head: Head, origin: Int, in world: World) -> String? {
        guard head.startLine.split(separator: " ").dropFirst().first == indexPath[...] else { return nil }
        let files = world.promised.filter { $0.promise == .index && $0.origin == origin }
        let (type, text) =
            origin == 0
            ? ("text/html", "<!DOCTYPE html>\n" + files.map(htmlEntry).joined(separator: "\n"))
            : (
                "application/vnd.pypi.simple.v1+json",
                #"{ "files": [ \#(files.map(jsonEntry).joined(separator: ", ")) ] }"#
            )
        return """
            HTTP/1.1 200 OK\r
            Content-Type: \(type)\r
            Date: \(httpDate(time(nil)))\r
            Content-Length: \(text.utf8.count)\r
            \r
            \(text)
            """
    }

    private static func htmlEntry(_ file: Resource) -> String {
        "<a href=\"../..\(file.path)#sha256=\(file.promisedDigest)\">\(file.number)</a>"
    }

    private static func jsonEntry(_ file: Resource) -> String {
        #"{ "filename": "\#(file.number)", "url": "../..\#(file.path)", "hashes": { "sha256": "\#(file.promisedDigest)" } }"#
    }
}
