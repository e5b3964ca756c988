import Testing
import Tokens

@Suite("RFC 7517: sets of keys")
struct KeySetTests {
    static let x = String(decoding: encodeBase64URL([UInt8](repeating: 7, count: 32)), as: UTF8.self)
    static let point = "\"x\":\"\(x)\""
    static let ed = #""kty":"OKP","crv":"Ed25519",\#(point)"#
    static let ec = #""kty":"EC","crv":"P-256",\#(point),"y":"\#(x)""#
    static func modulus(_ bytes: Int, top: UInt8 = 0x80) -> String {
        String(decoding: encodeBase64URL([top] + [UInt8](repeating: 1, count: bytes - 1)), as: UTF8.self)
    }
    static let rsa = #""kty":"RSA","e":"AQAB","n":"\#(modulus(256))""#
    static let oct = #""kty":"oct","k":"\#(x)""#

    static func set(_ keys: String..., allowsShared: Bool = true) throws(KeySetFault) -> JSONWebKeySet {
        let list = keys.map { "{\($0)}" }.joined(separator: ",")
        return try JSONWebKeySet(parsing: Array("{\"keys\":[\(list)]}".utf8), allowsShared: allowsShared)
    }

    static let damaged: [(key: String, problem: KeySetFault.Problem)] = [
        (#""use":"sig""#, .missing("kty")), (#""kty":1"#, .wrongType("kty")),
        (#""kty":"RSA","e":"AQAB""#, .missing("n")), (#""kty":"RSA","e":"AQAB","n":"A=""#, .notBase64URL("n")),
        (#""kty":"RSA","e":"AQAB","n":"\#(modulus(255))""#, .modulusLength),
        (#""kty":"RSA","e":"AQAB","n":"\#(modulus(256, top: 0x7F))""#, .modulusLength),
        (#""kty":"RSA","e":"AQAB","n":"\#(modulus(1025))""#, .modulusLength),
        (#""kty":"RSA","e":"AQ","n":"\#(modulus(256))""#, .exponent),
        (#""kty":"RSA","e":"Ag","n":"\#(modulus(256))""#, .exponent),
        (#""kty":"RSA","e":"","n":"\#(modulus(256))""#, .exponent),
        (#""kty":"EC","crv":"P-384",\#(point),"y":"\#(x)""#, .coordinateLength),
        (#""kty":"EC",\#(point)"#, .missing("crv")), (#""kty":"EC","crv":"P-256",\#(point)"#, .missing("y")),
        (#""kty":"OKP","crv":"Ed25519","x":"AAAA""#, .coordinateLength),
        (#""kty":"oct","k":"AAAA""#, .sharedLength),
        (#"\#(ed),"alg":"HS256""#, .algorithmOfOtherKind), (#"\#(ec),"alg":"ES384""#, .algorithmOfOtherKind),
        (#"\#(rsa),"alg":"HS256""#, .algorithmOfOtherKind), (#"\#(ec),"key_ops":"verify""#, .wrongType("key_ops")),
    ]
    @Test(arguments: damaged) func `a damaged key is named, and not shown`(
        _ row: (key: String, problem: KeySetFault.Problem)
    ) {
        #expect(throws: KeySetFault(row.problem, key: 2), "\(row.key)") { try Self.set(Self.ed, row.key) }
        #expect(!KeySetFault(row.problem, key: 2).text.contains(Self.x))
    }

    static let others = [
        #"\#(rsa),"use":"enc""#, #"\#(ec),"key_ops":["sign"]"#, #""kty":"EC","crv":"secp256k1",\#(point),"y":"\#(x)""#,
        #""kty":"OKP","crv":"X25519",\#(point)"#, #""kty":"AKP""#, #"\#(rsa),"alg":"RSA-OAEP""#,
    ]
    @Test(arguments: others) func `a key for something else is left out`(_ key: String) throws {
        #expect(try Self.set(Self.ed, key).keys.count == 1)
        #expect(throws: KeySetFault(.noUsableKey)) { try Self.set(key) }
    }

    @Test func `a set has a list of keys`() {
        for (text, problem) in [
            ("{}", KeySetFault.Problem.noKeys), ("[]", .noKeys), (#"{"keys":{}}"#, .noKeys),
            (#"{"keys":[]}"#, .noUsableKey),
        ] {
            #expect(throws: KeySetFault(problem)) {
                try JSONWebKeySet(parsing: Array(text.utf8), allowsShared: true)
            }
        }
        #expect(throws: KeySetFault.self) { try JSONWebKeySet(parsing: Array("{".utf8), allowsShared: true) }
        let long = [UInt8](repeating: 0x20, count: JSONWebKeySet.bytesMax + 1)
        #expect(throws: KeySetFault(.tooLong)) { try JSONWebKeySet(parsing: long, allowsShared: true) }
    }

    @Test func `a shared key does not come from a URL`() throws {
        #expect(try Self.set(Self.oct).keys.count == 1)
        #expect(throws: KeySetFault(.sharedFromURL, key: 1)) { try Self.set(Self.oct, allowsShared: false) }
    }

    /// Which algorithms each kind of key serves: the table against key confusion.
    static let kinds: [(key: String, algorithms: Set<SignatureAlgorithm>)] = [
        (rsa, [.rs256, .rs384, .rs512, .ps256]), (ec, [.es256]), (ed, [.edDSA]), (oct, [.hs256]),
        (#"\#(rsa),"alg":"RS256""#, [.rs256]), (#"\#(rsa),"alg":"PS256""#, [.ps256]),
    ]
    @Test(arguments: kinds) func `a key serves the algorithms of its kind alone`(
        _ row: (key: String, algorithms: Set<SignatureAlgorithm>)
    ) throws {
        let set = try Self.set(row.key)
        for algorithm in SignatureAlgorithm.allCases {
            let isServed = !set.candidates(for: algorithm, identifier: nil).isEmpty
            #expect(isServed == row.algorithms.contains(algorithm), "\(algorithm)")
        }
    }

    @Test func `kid chooses among the keys`() throws {
        let set = try Self.set(#"\#(Self.ed),"kid":"old""#, #"\#(Self.ed),"kid":"new""#, Self.ed)
        #expect(set.candidates(for: .edDSA, identifier: "new").map(\.identifier) == ["new"])
        #expect(set.candidates(for: .edDSA, identifier: "none").isEmpty)
        #expect(set.candidates(for: .edDSA, identifier: nil).count == 3)
        #expect(set.candidates(for: .es256, identifier: "new").isEmpty)
        let many = JSONWebKeySet([JSONWebKey](repeating: set.keys[0], count: 20))
        #expect(many.candidates(for: .edDSA, identifier: nil).count == JSONWebKeySet.candidatesMax)
    }
}
