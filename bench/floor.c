/* floor.c: what libjpeg(-turbo) itself needs for the parts of shrinking, or of auditing, that nobody can leave out.
 * For each file: read it, decode at 1/8 (entropy decoding and nothing else), encode one WxH picture at q90 4:2:0.
 * With --full it decodes whole pictures and encodes nothing.
 * Prints CPU milliseconds a file. Build: cc -O2 -o floor floor.c -ljpeg   Use: floor WIDTH HEIGHT FILE... | --full FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <time.h>
#include <jpeglib.h>

struct errors { struct jpeg_error_mgr base; jmp_buf back; };

static void fail(j_common_ptr c) { longjmp(((struct errors *)c->err)->back, 1); }
static void hush(j_common_ptr c, int level) { (void)c; (void)level; }

static unsigned char *slurp(const char *path, unsigned long *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *size = (unsigned long)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size);
    if (bytes && fread(bytes, 1, *size, file) != *size) { free(bytes); bytes = NULL; }
    fclose(file);
    return bytes;
}

static int decode(const unsigned char *bytes, unsigned long size, unsigned denominator) {
    struct jpeg_decompress_struct d;
    struct errors e;
    d.err = jpeg_std_error(&e.base);
    e.base.error_exit = fail;
    e.base.emit_message = hush;
    if (setjmp(e.back)) { jpeg_destroy_decompress(&d); return 0; }
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, bytes, size);
    jpeg_read_header(&d, TRUE);
    d.scale_num = 1;
    d.scale_denom = denominator;
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    JSAMPROW row = malloc((size_t)d.output_width * 3);
    while (d.output_scanline < d.output_height) jpeg_read_scanlines(&d, &row, 1);
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    free(row);
    return 1;
}

static void encode(const unsigned char *rgb, int width, int height) {
    struct jpeg_compress_struct c;
    struct errors e;
    unsigned char *out = NULL;
    unsigned long size = 0;
    c.err = jpeg_std_error(&e.base);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &size);
    c.image_width = (JDIMENSION)width;
    c.image_height = (JDIMENSION)height;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 90, TRUE);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = (JSAMPROW)rgb + (size_t)c.next_scanline * width * 3;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(out);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int full = strcmp(argv[1], "--full") == 0, first = full ? 2 : 3;
    int width = full ? 1 : atoi(argv[1]), height = full ? 1 : atoi(argv[2]), files = 0;
    unsigned char *picture = malloc((size_t)width * height * 3);
    for (int i = 0; i < width * height * 3; i++) /* as busy as a photo: smooth with some noise */
        picture[i] = (unsigned char)(((i / 3 % width) + (i / 3 / width)) / 6 + (i * 2654435761u >> 29));
    clock_t begun = clock();
    for (int i = first; i < argc; i++) {
        unsigned long size = 0;
        unsigned char *bytes = slurp(argv[i], &size);
        if (!bytes) continue;
        if (decode(bytes, size, full ? 1 : 8)) {
            if (!full) encode(picture, width, height);
            files++;
        }
        free(bytes);
    }
    if (!files) return 1;
    printf("%.4f\n", (double)(clock() - begun) / CLOCKS_PER_SEC * 1000.0 / files);
    return 0;
}
