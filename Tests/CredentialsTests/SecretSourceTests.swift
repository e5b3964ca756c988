import Credentials
import Testing

@Suite("Sources of secrets")
struct SecretSourceTests {
    static let file = SecretSource.file("/run/secret")
    static let rows: [(SecretSource, String, Result<Secret, SecretFault>)] = [
        (file, "abc\n", .success(Secret("abc"))), (file, "abc", .success(Secret("abc"))),
        (file, " a b \nignored\0\r\n", .success(Secret(" a b "))), (.command(["x"]), "a\nb", .success(Secret("a"))),
        (.descriptor(3), "a\n", .success(Secret("a"))), (.environment("X"), "a b", .success(Secret("a b"))),
        (.text(Secret("")), "", .success(Secret(""))), (.text(Secret("")), "a", .success(Secret("a"))),
        (file, "", .failure(.empty)), (file, "\nabc", .failure(.empty)), (.environment("X"), "", .failure(.empty)),
        (file, "abc\r\n", .failure(.hasCarriageReturn)), (file, "a\0b\n", .failure(.hasNUL)),
        (.environment("X"), "a\n", .failure(.hasLineFeed)), (.text(Secret("")), "a\nX: y", .failure(.hasLineFeed)),
    ]
    @Test(arguments: rows) func `the first line of what is read, or all of it`(
        _ row: (SecretSource, String, Result<Secret, SecretFault>)
    ) {
        let result = Result { () throws(SecretFault) in try row.0.secret(in: Array(row.1.utf8)) }
        #expect(result == row.2)
    }

    @Test func `the length is bounded`() throws {
        let longest = [UInt8](repeating: 0x61, count: SecretSource.bytesMax)
        #expect(try Self.file.secret(in: longest + [0x0A]).bytes == longest)
        #expect(throws: SecretFault.tooLong) { try Self.file.secret(in: longest + [0x61]) }
    }

    @Test func `a keytab is kept as it is, and begins with the version of its format`() throws {
        for version: UInt8 in [1, 2] {
            let bytes: [UInt8] = [5, version, 0, 0x0A, 0x0D]
            #expect(try Self.file.keytab(in: bytes).bytes == bytes)
        }
        #expect(throws: SecretFault.notAKeytab) { try Self.file.keytab(in: [5, 3]) }
        #expect(throws: SecretFault.notAKeytab) { try Self.file.keytab(in: Array("sesame".utf8)) }
        #expect(throws: SecretFault.empty) { try Self.file.keytab(in: []) }
    }

    @Test(arguments: SecretFault.allCases) func `a fault names its source and shows no secret`(_ fault: SecretFault) {
        let text = fault.text(of: .command(["/bin/vault", "--token=hunter2"]))
        #expect(text.hasPrefix("the secret from the program /bin/vault "))
        #expect(!text.contains("hunter2"))
        #expect(!fault.text(of: .text(Secret("hunter2"))).contains("hunter2"))
    }
}
