#include "kernels/cuda/products/product.h"

namespace cairn::kernels::cuda {

std::string to_string(const ProductShape& s) {
  std::string text =
      cat(dtype_name(s.in), '[', s.m, ", ", s.k, "] x [", s.k, ", ", s.n, "] to ", dtype_name(s.out));
  if (s.batch != 1) text += cat(", ", s.batch, " times");
  if (s.transpose_a || s.transpose_b)
    text += cat(", ", s.transpose_a ? s.transpose_b ? "both" : "the first" : "the second", " transposed");
  if (s.has_bias()) text += ", with bias";
  if (s.has_gelu()) text += ", with gelu";
  if (s.has_derivative()) text += ", with the derivative of gelu";
  if (s.has_sums()) text += ", with sums of the first";
  return text;
}

std::unique_ptr<Product> try_product(const ProductShape& shape, Chooser& chooser) {
  std::vector<std::string> options;
  auto product = try_product(shape, chooser.pick(), chooser.lists() ? &options : nullptr);
  if (product != nullptr) chooser.made(std::move(options));
  return product;
}

std::unique_ptr<Product> make_product(const ProductShape& shape, Chooser& chooser) {
  if (auto product = try_product(shape, chooser)) return product;
  chooser.made({});
  return make_plain_product(shape);
}

std::unique_ptr<Product> make_product_like(const ProductShape& like, const ProductShape& shape,
                                           Chooser& chooser) {
  auto product = try_product_like(like, shape, chooser.pick());
  chooser.made({});
  return product != nullptr ? std::move(product) : make_plain_product(shape);
}

}  // namespace cairn::kernels::cuda
