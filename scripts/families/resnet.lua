-- ResNet: residual blocks of convolutions, each with a BatchNorm.

return {
  words = "ResNet: classes of pictures",
  recipe = "resnet", of_pictures = true, learned = true,
  defaults = {
    num_channels = 3, embedding_size = 64, hidden_sizes = { 256, 512, 1024, 2048 }, depths = { 3, 4, 6, 3 },
    layer_type = "bottleneck", downsample_in_first_stage = false, downsample_in_bottleneck = false,
  },
  fixed = { hidden_act = "relu", stage_names = "any", out_features = "any", out_indices = "any" },
  shape = function(c, a)
    a.width, a.depths, a.widths = c.embedding_size, c.depths, c.hidden_sizes
    a.bottleneck = c.layer_type == "bottleneck"
    a.first_stride, a.early_stride = c.downsample_in_first_stage and 2 or 1, c.downsample_in_bottleneck
  end,
}
