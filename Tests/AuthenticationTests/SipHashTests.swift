import Authentication
import Testing

@Suite("SipHash-2-4-128")
struct SipHashTests {
    /// Of the reference implementation: the key is 00 01 … 0f, the text 00 01 … of so many bytes.
    static let vectors: [(count: Int, digest: SipHash.Digest)] = [
        (0, SipHash.Digest(low: 0xE6A8_25BA_047F_81A3, high: 0x9302_55C7_1472_F66D)),
        (1, SipHash.Digest(low: 0x44AF_996B_D8C1_87DA, high: 0x45FC_229B_1159_7634)),
        (7, SipHash.Digest(low: 0x53C1_DBD8_BEEB_F1A1, high: 0x3982_F01F_A64A_B8C0)),
        (8, SipHash.Digest(low: 0x61F5_5862_BAA9_623B, high: 0xB497_14F3_64E2_830F)),
        (9, SipHash.Digest(low: 0xABBA_D90A_0699_4426, high: 0xED71_6DBB_028B_7FC4)),
        (15, SipHash.Digest(low: 0x11A8_B033_99E9_9354, high: 0xD9C3_CF97_0FEC_087E)),
        (16, SipHash.Digest(low: 0xBB54_B067_CAA4_E26E, high: 0x7705_2385_BF15_33FD)),
        (40, SipHash.Digest(low: 0xAD5D_C995_1E30_6ADF, high: 0xD83B_91C6_C80C_AE97)),
        (63, SipHash.Digest(low: 0x4A83_502F_77D1_5051, high: 0x7CBD_3F97_9A06_3E50)),
    ]
    @Test(arguments: vectors.indices) func `the digests of the reference`(_ index: Int) {
        let (count, digest) = Self.vectors[index]
        let hash = SipHash(key: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))
        let text = [0xFF] + (0..<count).map { UInt8($0) } + [0xFF]
        #expect(hash.digest(of: text.span, 1..<(count + 1)) == digest)
    }

    @Test func `the half of a number is that of its eight bytes`() {
        let hash = SipHash(key: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))
        #expect(hash.half(of: 0x0706_0504_0302_0100) == 0x61F5_5862_BAA9_623B)
    }
}
